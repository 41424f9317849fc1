"""Tables of boards and cards: every change of a card is one commit with its event, its children and its letters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from hermes_agent.core.chat import Content, Conversation, Letter
from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, UnknownCard
from hermes_agent.core.messages import Origin
from hermes_agent.core.records import revive
from hermes_agent.store.outbox import Outbox
from hermes_agent.store.transaction import (
    Columns,
    Engine,
    Keyed,
    Many,
    Row,
    TimedTables,
    Transaction,
    Value,
    marks,
    plain,
    storable,
    written,
)
from hermes_agent.store.work.cards import Card, CardEvent, CardFile, CardRow, Change, Status, Workspace

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
EVENT_FIELDS = "card, number, kind, at, who, text, origin"
EVENTS = f"SELECT {EVENT_FIELDS} FROM card_event WHERE card = $1 AND number > $2 ORDER BY number LIMIT $3"
FILE_FIELDS = "card, name, sha256, bytes, path, who"
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
    keys = Keyed[[str], str](f"SELECT key, id {CARDS} AND board = $1 AND key IS NOT NULL")
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
    files = Many[[str], CardFile](f"SELECT {FILE_FIELDS} FROM card_file WHERE card = $1 ORDER BY name", file_of)
    """The files of a card."""
    uncleaned = Many[[float, str], Card](UNCLEANED, card_of)
    """Archived cards whose workspace on this machine may go now: those that ended before a time, of a host."""

    async def events(self, card: str, after: int = 0, limit: int = 1000) -> list[CardEvent]:
        """What happened to a card after that version of it."""
        return [event_of(row) for row in await self._engine.read(lambda tx: tx.rows(EVENTS, card, after, limit))]


def unknown(card: str) -> UnknownCard:
    return UnknownCard(f"There is no card {card}: `hermes kanban list` shows all.")


COLUMNS = (
    "board, key, title, status, assignee, priority, tenant, author, parents_left, due, ready_at, host, place, owner, "
    "epoch, ended, cleaned, version, body"
)
INSERT = (
    f"INSERT INTO card (home, id, created, {COLUMNS}) VALUES ($home, $1, $2, {marks(19, 3)}) ON CONFLICT DO NOTHING"
)
UPDATE = f"UPDATE card SET ({COLUMNS}) = ({marks(19, 2)}) WHERE home = $home AND id = $1"
LOCKED = f"{GET} FOR NO KEY UPDATE"
BY_KEY = "SELECT id FROM card WHERE home = $home AND board = $1 AND key = $2"
NEW_BOARD = "INSERT INTO board (home, name, created) VALUES ($home, $1, $2) ON CONFLICT DO NOTHING"
LINK = "INSERT INTO card_link (parent, child) VALUES ($1, $2) ON CONFLICT DO NOTHING"
UNLINK = "DELETE FROM card_link WHERE parent = $1 AND child = $2"
# Whether `$2` stands above `$1`.
ABOVE = (
    "WITH RECURSIVE up (id) AS (SELECT parent FROM card_link WHERE child = $1 UNION "
    "SELECT card_link.parent FROM card_link JOIN up ON card_link.child = up.id) SELECT 1 FROM up WHERE id = $2"
)
EVENT = "INSERT INTO card_event (card, number, kind, at, who, text, origin) VALUES ($1, $2, $3, $4, $5, $6, $7)"
END_EARLY = "UPDATE card_run SET outcome = $3 WHERE card = $1 AND outcome = '' AND ended IS NULL AND epoch <= $2"
FILE = (
    "INSERT INTO card_file (card, name, sha256, bytes, path, who) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT "
    "(card, name) DO UPDATE SET sha256 = excluded.sha256, bytes = excluded.bytes, path = excluded.path, "
    "who = excluded.who"
)
WATCH = "INSERT INTO card_watch (home, what, conversation) VALUES ($home, $1, $2) ON CONFLICT DO NOTHING"
UNWATCH = "DELETE FROM card_watch WHERE home = $home AND what = $1 AND conversation = $2"
WATCHERS = "SELECT DISTINCT conversation FROM card_watch WHERE home = $home AND what IN ($1, $2) ORDER BY conversation"
HAS_RUNS = "SELECT 1 FROM card_run WHERE card = $1 LIMIT 1"
REMOVE = ("card_event", "card_file", "card_link")
Decide = Callable[[Card], Change | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """A card with whether it is new; a key that was used before gives the first card."""

    card: Card
    is_new: bool


class Boards(CardReading):
    """Boards, cards, their links, events, files and watchers. `change` is the only way to move a card."""

    def __init__(self, engine: Engine, clock: Clock, outbox: Outbox) -> None:
        super().__init__(engine, clock)
        self._outbox = outbox
        self._ids = RandomIds()

    async def create(self, card: Card, by: str, parents: Sequence[str] = (), file: CardFile | None = None) -> Created:
        """Create a card under a new id, with its parents and a file; a todo card without an open parent becomes ready.
        Raises `UnknownCard`, `HermesError`."""

        async def change(tx: Transaction) -> Created:
            created = await self._add(tx, card, by, parents)
            if created.is_new and file is not None:
                await self.attach(tx, replace(file, card=created.card.id))
            return created

        return await self._engine.write(change)

    async def create_all(self, cards: Sequence[tuple[Card, Sequence[str]]], known: Mapping[str, str], by: str) -> None:
        """Create cards in one commit, each with the keys of its parents, which stand before it or are `known` (their
        ids by key). Raises as `create`."""

        async def change(tx: Transaction) -> None:
            ids = dict(known)
            for card, parents in cards:
                ids[card.key] = (await self._add(tx, card, by, [ids[each] for each in parents])).card.id

        await self._engine.write(change)

    async def _add(self, tx: Transaction, card: Card, by: str, parents: Sequence[str]) -> Created:
        now, key = self._clock.now(), card.key
        await tx.run(NEW_BOARD, card.board, now)
        left = 0
        for parent in sorted(set(parents)):
            left += _counts(await self._locked(tx, parent), card)
        status = Status.READY if card.status is Status.TODO and not left else card.status
        while True:
            if key and (row := await tx.row(BY_KEY, card.board, key)):
                return Created(card=await self._locked(tx, row[0]), is_new=False)
            name = f"t_{self._ids.short()[:6]}"
            new = replace(card, id=name, parents_left=left, status=status, created=now, version=1)
            if await tx.run(INSERT, new.id, now, *_columns(new)):
                break
        await tx.many(LINK, [(parent, new.id) for parent in sorted(set(parents))])
        await tx.run(EVENT, *self._event(new, "created", by, "", Origin.RUNTIME))
        tx.rings.add("")
        return Created(card=new, is_new=True)

    async def change(self, card: str, decide: Decide, promote: Decide, beside: Beside | None = None) -> Card:
        """Change a card in one commit: `decide` says what it becomes (None: nothing), `promote` what a child becomes
        whose last parent is done; `beside` writes more in it. Raises `UnknownCard`, and what `decide` raises."""

        async def change(tx: Transaction) -> Card:
            return await self.apply(tx, card, decide, promote, beside)

        return await self._engine.write(change)

    async def apply(
        self, tx: Transaction, card: str, decide: Decide, promote: Decide, beside: Beside | None = None
    ) -> Card:
        """The same within a change."""
        before = await self._locked(tx, card)
        decided = decide(before)
        if decided is None:
            return before
        after = await self.put(tx, decided)
        if decided.ending is not None:
            await tx.run(END_EARLY, card, before.epoch, decided.ending.value)
        if beside is not None:
            await beside(tx, after)
        if after.done and not before.done:
            for (child,) in await tx.rows(CHILDREN, card):
                waiting = await self._locked(tx, child)
                waiting = replace(waiting, parents_left=max(0, waiting.parents_left - 1))
                promoted = promote(waiting) if waiting.is_open else None
                await self.put(tx, promoted or Change(card=waiting, kind="parent done", by=card))
        return after

    async def put(self, tx: Transaction, change: Change) -> Card:
        """Write a decided card with its event and its letters."""
        (card,) = await self.put_all(tx, [change])
        if change.letter:
            content = Content(text=self._engine.redact(change.letter))
            for (conversation,) in await tx.rows(WATCHERS, card.id, f"board:{card.board}"):
                key, to = f"board:{card.id}:{card.version}:{conversation}", Conversation.parse(conversation)
                await self._outbox.put(tx, Letter(key=key, to=to, content=content))
        return card

    async def put_all(self, tx: Transaction, changes: Sequence[Change]) -> list[Card]:
        """Write decided cards with their events, and no letters."""
        cards = [replace(change.card, version=change.card.version + 1) for change in changes]
        await tx.many(UPDATE, [(card.id, *_columns(card)) for card in cards])
        events = [
            self._event(card, change.kind, change.by, change.text, change.origin)
            for card, change in zip(cards, changes, strict=True)
        ]
        await tx.many(EVENT, events)
        tx.rings.add("")
        return cards

    async def link(self, parent: str, child: str, decide: Decide, *, remove: bool = False) -> Card:
        """Make a card wait for another one, or no longer; `decide` says what the child becomes, with its count of
        open parents. Raises `HermesError` for a circle, a card of another board, or a closed one."""

        async def change(tx: Transaction) -> Card:
            above, below = await self._locked(tx, parent), await self._locked(tx, child)
            if remove:
                count = -int(not above.done) if await tx.run(UNLINK, parent, child) else 0
            else:
                if parent == child or await tx.row(ABOVE, parent, child):
                    raise HermesError(f"{child} cannot wait for {parent}: that would be a circle.")
                count = _counts(above, below) if await tx.run(LINK, parent, child) else 0
            decided = decide(replace(below, parents_left=max(0, below.parents_left + count)))
            return below if decided is None else await self.put(tx, decided)

        return await self._engine.write(change)

    async def remove(self, card: str) -> bool:
        """Remove a card that never ran; False for one that did, or that others wait for."""

        async def change(tx: Transaction) -> bool:
            await self._locked(tx, card)
            if await tx.row(HAS_RUNS, card) or await tx.row(CHILDREN, card):
                return False
            for table in REMOVE:
                column = "child" if table == "card_link" else "card"
                await tx.run(f"DELETE FROM {table} WHERE {column} = $1", card)
            await tx.run("DELETE FROM card_watch WHERE home = $home AND what = $1", card)
            return await tx.run("DELETE FROM card WHERE home = $home AND id = $1", card) > 0

        return await self._engine.write(change)

    async def create_board(self, name: str) -> None:
        """Create a board; an existing one stays."""
        await self._engine.write(lambda tx: tx.run(NEW_BOARD, name, self._clock.now()))

    async def attach(self, tx: Transaction, file: CardFile) -> None:
        """Note a file of a card; the same name again replaces it."""
        await tx.run(FILE, file.card, file.name, file.sha256, file.bytes, file.path, file.by)

    async def watch(self, what: str, conversation: str, *, stop: bool = False) -> None:
        """Tell a conversation of a card (its id) or a board (`board:NAME`), or no longer."""
        await self._engine.write(lambda tx: tx.run(UNWATCH if stop else WATCH, what, conversation))

    def _event(self, card: Card, kind: str, who: str, text: str, origin: Origin) -> tuple[Value, ...]:
        said = storable(self._engine.redact(text))
        return card.id, card.version, kind, self._clock.now(), who, said, origin.value

    async def _locked(self, tx: Transaction, card: str) -> Card:
        row = await tx.row(LOCKED, card)
        if row is None:
            raise unknown(card)
        return card_of(row)


Beside = Callable[[Transaction, Card], Awaitable[None]]


def _counts(parent: Card, child: Card) -> int:
    """How many open parents this one adds. Raises `HermesError` for one that nothing may wait for."""
    if parent.board != child.board:
        raise HermesError(
            f"{parent.id} is on the board {parent.board}, not on {child.board}: a link stays on one board."
        )
    if parent.status in (Status.ARCHIVED, Status.CANCELLED) or child.status is Status.ARCHIVED:
        closed = parent if parent.status in (Status.ARCHIVED, Status.CANCELLED) else child
        raise HermesError(f"{closed.id} is {closed.status}: it takes no links.")
    return int(not parent.done)


def _columns(card: Card) -> tuple[str | int | float | None, ...]:
    place = card.folder if card.workspace is Workspace.DIR else ""
    words = (card.board, card.key or None, storable(card.title), card.status.value, card.assignee)
    counts = (card.priority, card.tenant, card.person, card.parents_left, int(card.is_due), card.ready_at)
    lease = (card.host, storable(place), card.owner or None, card.epoch, card.ended)
    return (*words, *counts, *lease, int(card.cleaned), card.version, written(card))
