"""Reading the tables of the board: cards, links, events and files."""

from __future__ import annotations

from hermes_agent.core.errors import UnknownCard
from hermes_agent.core.messages import Origin
from hermes_agent.core.records import revive
from hermes_agent.store.transaction import Row, TimedTables, plain
from hermes_agent.store.work.cards import Card, CardEvent, CardFile, CardRow

GET = "SELECT body FROM card WHERE home = $home AND id = $1"
LIST = (
    "SELECT id, board, title, status, assignee, priority, tenant, parents_left, created FROM card WHERE home = $home "
    "AND (CAST($1 AS TEXT) = '' OR board = $1) AND (CAST($2 AS TEXT) = '' OR assignee = $2) "
    "AND (CAST($3 AS TEXT) = '' OR tenant = $3) AND (CAST($6 AS TEXT) = '' OR author = $6) "
    "AND (CAST($4 AS TEXT) = '' OR status = $4) "
    "AND (CAST($4 AS TEXT) <> '' OR status <> 'archived') ORDER BY priority, created, id LIMIT $5"
)
WHOLE = "SELECT body FROM card WHERE home = $home AND board = $1 ORDER BY id"
KEYS = "SELECT key, id FROM card WHERE home = $home AND board = $1 AND key IS NOT NULL"
LINKS = (
    "SELECT card_link.parent, card_link.child FROM card_link JOIN card ON card.id = card_link.child "
    "WHERE card.home = $home AND card.board = $1 ORDER BY card_link.child, card_link.parent"
)
STATS = "SELECT board, status, count(*) FROM card WHERE home = $home GROUP BY board, status ORDER BY board, status"
BOARDS = "SELECT name, created FROM board WHERE home = $home ORDER BY name"
PARENTS = "SELECT parent FROM card_link WHERE child = $1 ORDER BY parent"
CHILDREN = "SELECT child FROM card_link WHERE parent = $1 ORDER BY child"
EVENTS = (
    "SELECT card, number, kind, at, who, text, origin FROM card_event WHERE card = $1 AND number > $2 "
    "ORDER BY number LIMIT $3"
)
FILES = "SELECT card, name, sha256, bytes, path, who FROM card_file WHERE card = $1 ORDER BY name"
UNCLEANED = (
    "SELECT body FROM card WHERE home = $home AND cleaned = 0 AND status = 'archived' AND ended <= $1 AND host = $2 "
    "AND NOT EXISTS (SELECT 1 FROM card_run WHERE card_run.card = card.id AND card_run.ended IS NULL) "
    "ORDER BY ended LIMIT 20"
)


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
        assignee: str = "",
        tenant: str = "",
        author: str = "",
        limit: int = 1000,
    ) -> list[CardRow]:
        """Cards by urgency and age; archived ones only where asked for."""
        rows = await self._engine.read(lambda tx: tx.rows(LIST, board, assignee, tenant, status, limit, author))
        return [
            CardRow(
                id=one,
                board=where,
                title=title,
                status=status,
                assignee=who,
                priority=urgency,
                tenant=whose,
                parents_left=left,
                created=at,
            )
            for one, where, title, status, who, urgency, whose, left, at in rows
        ]

    async def whole(self, board: str) -> list[Card]:
        """All cards of a board, archived ones too."""
        return [card_of(row) for row in await self._engine.read(lambda tx: tx.rows(WHOLE, board))]

    async def keys(self, board: str) -> dict[str, str]:
        """The cards of a board that have a key, by it."""
        return {row[0]: row[1] for row in await self._engine.read(lambda tx: tx.rows(KEYS, board))}

    async def links(self, board: str) -> list[tuple[str, str]]:
        """All links of a board, each from the parent to the child."""
        return [(row[0], row[1]) for row in await self._engine.read(lambda tx: tx.rows(LINKS, board))]

    async def stats(self) -> list[tuple[str, str, int]]:
        """How many cards each board has, by status."""
        return [(row[0], row[1], int(row[2])) for row in await self._engine.read(lambda tx: tx.rows(STATS))]

    async def boards(self) -> list[str]:
        """The names of all boards."""
        return [row[0] for row in await self._engine.read(lambda tx: tx.rows(BOARDS))]

    async def parents(self, card: str) -> list[str]:
        """The cards that it waits for, or waited."""
        return [row[0] for row in await self._engine.read(lambda tx: tx.rows(PARENTS, card))]

    async def children(self, card: str) -> list[str]:
        """The cards that wait for it, or waited."""
        return [row[0] for row in await self._engine.read(lambda tx: tx.rows(CHILDREN, card))]

    async def events(self, card: str, after: int = 0, limit: int = 1000) -> list[CardEvent]:
        """What happened to a card after that version of it."""
        return [_event(row) for row in await self._engine.read(lambda tx: tx.rows(EVENTS, card, after, limit))]

    async def files(self, card: str) -> list[CardFile]:
        """The files of a card."""
        return [_file(row) for row in await self._engine.read(lambda tx: tx.rows(FILES, card))]

    async def uncleaned(self, before: float, host: str) -> list[Card]:
        """Archived cards whose workspace on this machine may go now."""
        return [card_of(row) for row in await self._engine.read(lambda tx: tx.rows(UNCLEANED, before, host))]


def unknown(card: str) -> UnknownCard:
    return UnknownCard(f"There is no card {card}: `hermes kanban list` shows all.")


def card_of(row: Row) -> Card:
    found: Card = revive(Card, plain(row[0]))
    return found


def _event(row: Row) -> CardEvent:
    card, number, kind, at, who, text, origin = row
    return CardEvent(card=card, number=number, kind=kind, at=at, by=who, text=text, origin=Origin(origin))


def _file(row: Row) -> CardFile:
    card, name, sha256, size, path, who = row
    return CardFile(card=card, name=name, sha256=sha256, bytes=size, path=path, by=who)
