"""Tables of boards and cards: every change of a card is one commit with its event, its children and its letters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from hermes_agent.core.chat import Content, Conversation, Letter
from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Origin
from hermes_agent.store.outbox import Outbox
from hermes_agent.store.transaction import Engine, Transaction, Value, marks, storable, written
from hermes_agent.store.work.card_reading import CHILDREN, GET, CardReading, card_of, unknown
from hermes_agent.store.work.cards import Card, CardFile, Change, Status, Workspace

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

    async def create(self, card: Card, by: str, parents: Sequence[str] = ()) -> Created:
        """Create a card under a new id, with its parents; a todo card without an open parent becomes ready. Raises
        `UnknownCard`, `HermesError`."""
        now, key = self._clock.now(), card.key

        async def change(tx: Transaction) -> Created:
            await tx.run(NEW_BOARD, card.board, now)
            if key and (row := await tx.row(BY_KEY, card.board, key)):
                return Created(card=await self._locked(tx, row[0]), is_new=False)
            left = 0
            for parent in sorted(set(parents)):
                left += _counts(await self._locked(tx, parent), card)
            status = Status.READY if card.status is Status.TODO and not left else card.status
            new = replace(
                card, id=f"t_{self._ids.short()[:6]}", parents_left=left, status=status, created=now, version=1
            )
            while not await tx.run(INSERT, new.id, now, *_columns(new)):
                if key and (row := await tx.row(BY_KEY, card.board, key)):
                    return Created(card=await self._locked(tx, row[0]), is_new=False)
                new = replace(new, id=f"t_{self._ids.short()[:6]}")
            for parent in sorted(set(parents)):
                await tx.run(LINK, parent, new.id)
            await tx.run(EVENT, *self._event(new, "created", by, "", Origin.RUNTIME))
            tx.rings.add("")
            return Created(card=new, is_new=True)

        return await self._engine.write(change)

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
    counts = (card.priority, card.tenant, card.created_by, card.parents_left, int(card.is_due), card.ready_at)
    lease = (card.host, storable(place), card.owner or None, card.epoch, card.ended)
    return (*words, *counts, *lease, int(card.cleaned), card.version, written(card))
