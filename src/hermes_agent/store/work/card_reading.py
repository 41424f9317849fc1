"""Reading the tables of the board: cards, links, events and files."""

from __future__ import annotations

from hermes_agent.core.errors import UnknownCard
from hermes_agent.core.records import revive
from hermes_agent.store.transaction import Columns, Keyed, Many, Row, TimedTables, plain, second
from hermes_agent.store.work.cards import Card, CardEvent, CardFile, CardRow

CARDS = "FROM card WHERE home = $home"
BODY = f"SELECT body {CARDS}"
GET = f"{BODY} AND id = $1"
LISTED = "id, board, title, status, assignee, priority, tenant, parents_left, created"
LIST = (
    f"SELECT {LISTED} {CARDS} "
    "AND (CAST($1 AS TEXT) = '' OR board = $1) AND (CAST($2 AS TEXT) IS NULL OR assignee = $2) "
    "AND (CAST($3 AS TEXT) = '' OR tenant = $3) AND (CAST($6 AS TEXT) = '' OR author = $6) "
    "AND (CAST($4 AS TEXT) = '' OR status = $4) "
    "AND (CAST($4 AS TEXT) <> '' OR status <> 'archived') ORDER BY priority, created, id LIMIT $5"
)
LINKS = (
    "SELECT card_link.parent, card_link.child FROM card_link JOIN card ON card.id = card_link.child "
    "WHERE card.home = $home AND card.board = $1 ORDER BY card_link.child, card_link.parent"
)
STATS = f"SELECT board, status, count(*) {CARDS} GROUP BY board, status ORDER BY board, status"
CHILDREN = "SELECT child FROM card_link WHERE parent = $1 ORDER BY child"
EVENT = "card, number, kind, at, who, text, origin"
EVENTS = f"SELECT {EVENT} FROM card_event WHERE card = $1 AND number > $2 ORDER BY number LIMIT $3"
FILE = "card, name, sha256, bytes, path, who"
UNCLEANED = (
    f"{BODY} AND cleaned = 0 AND status = 'archived' AND ended <= $1 AND host = $2 "
    "AND NOT EXISTS (SELECT 1 FROM card_run WHERE card_run.card = card.id AND card_run.ended IS NULL) "
    "ORDER BY ended LIMIT 20"
)
row_of = Columns(CardRow, LISTED)
event_of = Columns(CardEvent, "card, number, kind, at, by, text, origin")
file_of = Columns(CardFile, "card, name, sha256, bytes, path, by")


def card_of(row: Row) -> Card:
    """The card of a row that begins with its body."""
    found: Card = revive(Card, plain(row[0]))
    return found


def pair(row: Row) -> tuple[str, str]:
    """The first two columns."""
    return row[0], row[1]


class CardReading(TimedTables):
    """What the board's tables say."""

    async def get(self, card: str) -> Card:
        """The card. Raises `UnknownCard`."""
        found = await self._one(card_of, GET, card, brief=True)
        if found is None:
            raise unknown(card)
        return found

    async def list_cards(
        self,
        board: str = "",
        *,
        status: str = "",
        assignee: str | None = None,
        tenant: str = "",
        author: str = "",
        limit: int = 1000,
    ) -> list[CardRow]:
        """Cards by urgency and age; archived ones only where asked for. `assignee`: None for all, empty for the base
        home."""
        rows = await self._engine.read(lambda tx: tx.rows(LIST, board, assignee, tenant, status, limit, author))
        return [row_of(row) for row in rows]

    whole = Many[[str], Card](f"{BODY} AND board = $1 ORDER BY id", card_of)
    """All cards of a board, archived ones too."""
    keys = Keyed[[str], str](f"SELECT key, id {CARDS} AND board = $1 AND key IS NOT NULL", second)
    """The cards of a board that have a key, by it."""
    links = Many[[str], tuple[str, str]](LINKS, pair)
    """All links of a board, each from the parent to the child."""
    stats = Many[[], tuple[str, str, int]](STATS, lambda row: (row[0], row[1], int(row[2])))
    """How many cards each board has, by status."""
    boards = Many[[], str]("SELECT name FROM board WHERE home = $home ORDER BY name")
    """The names of all boards."""
    parents = Many[[str], str]("SELECT parent FROM card_link WHERE child = $1 ORDER BY parent")
    """The cards that it waits for, or waited."""
    children = Many[[str], str](CHILDREN)
    """The cards that wait for it, or waited."""
    files = Many[[str], CardFile](f"SELECT {FILE} FROM card_file WHERE card = $1 ORDER BY name", file_of)
    """The files of a card."""
    uncleaned = Many[[float, str], Card](UNCLEANED, card_of)
    """Archived cards whose workspace on this machine may go now: those that ended before a time, of a host."""

    async def events(self, card: str, after: int = 0, limit: int = 1000) -> list[CardEvent]:
        """What happened to a card after that version of it."""
        return [event_of(row) for row in await self._engine.read(lambda tx: tx.rows(EVENTS, card, after, limit))]


def unknown(card: str) -> UnknownCard:
    return UnknownCard(f"There is no card {card}: `hermes kanban list` shows all.")
