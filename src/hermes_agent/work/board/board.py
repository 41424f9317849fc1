"""The board: what people, agents and workers do with cards. Rights and moves are decided by `rules.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from hermes_agent.core.chat import Conversation
from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import Home
from hermes_agent.store.database import Store
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.work.board import Created, unknown
from hermes_agent.store.work.cards import (
    CLOSED,
    HUMAN,
    Card,
    CardEvent,
    CardFile,
    CardRow,
    CardRun,
    Change,
    Ending,
    Reason,
    Status,
)
from hermes_agent.work.board.new_cards import LONGEST_BODY, WORDS, NewCard, NewCards, check_words, meant, origin_of
from hermes_agent.work.board.rules import By, NotMoved, Order, Role, Verb, check_lease, check_right, may_see, moved
from hermes_agent.work.board.settings import BoardSettings
from hermes_agent.work.board.workspaces import copy_file, drop_files, keep_file, read_file

MOST_CREATED = 10
"""So many cards may one run create."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardView:
    """A card with everything around it."""

    card: Card
    parents: Sequence[CardRow]
    children: Sequence[CardRow]
    events: Sequence[CardEvent]
    files: Sequence[CardFile]
    runs: Sequence[CardRun]


def promote(card: Card) -> Change | None:
    """What becomes of a card whose last parent is done."""
    waits = not card.parents_left and card.status in (Status.TODO, Status.BLOCKED)
    new = moved(card, Order(verb=Verb.PROMOTE), BOARD, 0.0) if waits else card
    return None if new.status is card.status else Change(card=new, kind=new.status.value, by="board")


BOARD = By(name="board", role=Role.BOARD)


class Board:
    """The board of all profiles of a home. `home` is the base home, `objection` as in `NewCards`."""

    def __init__(
        self, *, store: Store, home: Home, settings: BoardSettings, clock: Clock, objection: Callable[[Path], str]
    ) -> None:
        self.store, self.home, self.settings = store, home, settings
        self._clock = clock
        self.cards, self.runs = store.boards, store.card_runs
        self.new = NewCards(self.cards, home, settings, objection)

    async def create(self, by: By, new: NewCard) -> Created:
        """Create a card; a key that was used before gives the first one. Raises `HermesError`."""
        card, body = await self.new.checked(by, new)
        await self._check_seen(by, *new.parents)
        parents = new.parents or ((by.card,) if by.role is Role.WORKER else ())
        if by.role is Role.WORKER:
            made = [each for each in await self.cards.events(by.card) if each.kind == "child"]
            if len(made) >= MOST_CREATED:
                raise HermesError(f"One card may create at most {MOST_CREATED} others: block it, and say what is left.")
        divides = by.role is Role.WORKER and (await self.cards.get(by.card)).status is Status.TRIAGE
        file = None
        if len(body) > LONGEST_BODY:
            place, content = f"new-{RandomIds().short()}", body.encode("utf-8", "replace")
            file = await asyncio.to_thread(keep_file, self.home, place, "body.md", content, by.name)
        created = await self.cards.create(card, by.name, new.parents if divides else parents, file)
        if created.is_new and by.role is Role.WORKER:
            await self._record(by.card, "child", by, created.card.id)
        if divides:  # The pieces come first.
            await self._depend(by, by.card, created.card.id)
        return created

    async def update(self, by: By, card: str, **fields: object) -> Card:
        """Change what a card says: title, body, priority, tenant, model, check, max_minutes, max_attempts, goal_turns.
        Fields that are None stay. Raises `HermesError`."""
        given = {name: value for name, value in fields.items() if value is not None}
        if "check" in given:
            given["validator"] = await asyncio.to_thread(self.new.validator, by, str(given.pop("check")))
        if "max_minutes" in given:
            given["max_seconds"] = 60 * float(str(given.pop("max_minutes")))
        if not given:
            raise HermesError("Say what to change: a title, body, priority, tenant, model, check or limit.")
        check_words(**{name: given[name] for name in WORDS if name in given})
        if "title" in given:
            given["title"] = " ".join(str(given["title"]).split())

        def decide(found: Card) -> Change:
            check_right(found, "update", by)
            if found.status in CLOSED:
                raise NotMoved(f"{found.id} is {found.status}: it is not changed any more.")
            new = replace(found, **given)  # type: ignore[arg-type]  # the names are those of `NewCard`
            if not given.keys().isdisjoint(("title", "body")):
                new = replace(new, origin=max(found.origin, origin_of(by), key=lambda each: each.trust))
            return Change(card=new, kind="updated", by=by.name, text=", ".join(sorted(given)))

        return await self.cards.change(card, decide, promote)

    async def move(self, by: By, card: str, order: Order, *, text: str = "", letter: str = "") -> Card:
        """Do a verb of `rules.moved`; `text` is kept with the event. Raises `NotMoved`, `LostLease`, `UnknownCard`."""

        def decide(found: Card) -> Change:
            new = moved(found, order, by, self._clock.now())
            ending = _ending(found, order, by) if found.owner and not new.owner else None
            note = letter or _letter(new, text, found)
            said = Change(card=new, kind=order.verb.value, by=by.name, text=text, origin=origin_of(by), letter=note)
            return replace(said, ending=ending)

        return await self.cards.change(card, decide, promote)

    async def end(self, run: CardRun, order: Order, code: int | None, text: str) -> None:
        """Record that the process of a run is gone, and what that makes of a card that nobody moved."""

        def decide(found: Card) -> Change | None:
            if not found.owner or found.epoch not in (run.epoch, run.epoch + 1):
                return None
            new = moved(found, order, BOARD, self._clock.now())
            letter = _letter(new, text, found)
            return Change(card=new, kind=order.ending.value, by=BOARD.name, text=text, letter=letter)

        await self.runs.end(run, code, order.ending, decide, promote)

    async def assign(self, by: By, card: str, assignee: str) -> Card:
        """Give a card to a profile. Raises `HermesError` for one that does not exist."""
        return await self.move(
            by, card, Order(verb=Verb.ASSIGN, assignee=await self.new.profile(assignee)), text=assignee
        )

    async def complete(
        self, by: By, card: str, summary: str, metadata: str = "", artefacts: Sequence[str] = ()
    ) -> Card:
        """Say that a card is done; its check decides where it has one. `artefacts` are files of the workspace, kept
        with the card. Raises `HermesError`."""
        if not summary.strip():
            raise HermesError("Say in the summary what was done: those who wait for the card read only that.")
        for name in artefacts:
            await self.attach(by, card, name)
        return await self.move(by, card, Order(verb=Verb.COMPLETE, summary=summary, metadata=metadata), text=summary)

    async def block(self, by: By, card: str, reason: Reason, text: str, on: str = "", minutes: float = 0.0) -> Card:
        """Stop work on a card for a reason; one that waits for another card goes on when that is done. Raises
        `HermesError`."""
        if not text.strip():
            raise HermesError("Say what is missing, so that somebody can help.")
        if reason is Reason.FAILED or (reason is Reason.DEPENDENCY and not on):
            raise HermesError(
                "Block with needs_input, capability, transient, or dependency with the card it waits for."
            )
        if on:
            await self._check_seen(by, on)
        if reason is Reason.DEPENDENCY and not (await self._depend(by, card, on)).parents_left:
            raise HermesError(f"{on} is done: read it with kanban_show, and go on.")
        until = self._clock.now() + 60 * (minutes or 15)
        return await self.move(by, card, Order(verb=Verb.BLOCK, reason=reason, on=on, until=until), text=text)

    async def link(self, by: By, parent: str, child: str, *, remove: bool = False) -> Card:
        """Make a card wait for another one, or no longer. Raises `HermesError`."""
        await self._check_seen(by, parent)

        def decide(found: Card) -> Change:
            check_right(found, "link", by)
            if found.status in CLOSED or found.owner:
                raise NotMoved(f"{child} is {found.status}: what it waits for cannot be changed now.")
            kind = "unlinked" if remove else "linked"
            new = replace(found, status=Status.TODO) if found.status is Status.READY and found.parents_left else found
            promoted = promote(new)
            return Change(card=promoted.card if promoted else new, kind=kind, by=by.name, text=parent)

        return await self.cards.link(parent, child, decide, remove=remove)

    async def comment(self, by: By, card: str, text: str) -> None:
        """Say something on a card. Raises `HermesError`."""
        if not text.strip() or len(text) > LONGEST_BODY:
            raise HermesError(f"A comment has 1 to {LONGEST_BODY:,} characters; attach what is longer.")
        await self._check_seen(by, card)
        await self._record(card, "comment", by, text)

    async def attach(self, by: By, card: str, path: str, folder: str = "") -> CardFile:
        """Keep a copy of a file with a card, by its path below the card's workspace (for a person, any path). Raises
        `HermesError`."""
        found = await self.cards.get(card)
        check_lease(found, by) if by.role is Role.WORKER and by.card == card else check_right(found, "attach", by)
        read = partial(read_file, path, folder or found.folder, confined=not by.is_person)
        name, content = await asyncio.to_thread(read)
        return await self._store_file(by, found, name, content)

    async def fetch(self, by: By, card: str, name: str, folder: str) -> str:
        """Copy a file of a card into a folder; its path there. Raises `HermesError`."""
        found = {file.name: file for file in (await self.view(by, card)).files}
        if name not in found:
            raise HermesError(meant("file", name, list(found)) if found else f"{card} has no files.")
        return await asyncio.to_thread(copy_file, found[name], folder)

    async def delete(self, by: By, card: str) -> str:
        """Remove a card that never ran; any other is cancelled and archived, and says so. Raises `HermesError`."""
        found = await self.cards.get(card)
        check_right(found, "delete", by)
        kept = await self.cards.files(card)
        if not found.owner and await self.cards.remove(card):
            await asyncio.to_thread(drop_files, kept)
            return f"{card} is gone."
        if found.is_open:
            await self.move(by, card, Order(verb=Verb.CANCEL), text="deleted")
        if found.status is not Status.ARCHIVED:
            await self.move(by, card, Order(verb=Verb.ARCHIVE), text="deleted")
        return f"{card} has a history: it was archived."

    async def watch(self, card: str, to: Conversation, *, stop: bool = False) -> None:
        """Tell a conversation how a card (its id) or a whole board (`board:NAME`) goes. Raises `HermesError`."""
        if card.startswith("board:"):
            await self.new.board(card.removeprefix("board:"))
        else:
            await self.cards.get(card)
        await self.cards.watch(card, to.key, stop=stop)

    async def view(self, by: By, card: str) -> CardView:
        """A card with everything around it. Raises `UnknownCard`, also for one that is not this actor's to see."""
        await self._check_seen(by, card)
        found = await self.cards.get(card)
        return CardView(
            card=found,
            parents=[_row(await self.cards.get(each)) for each in await self.cards.parents(card)],
            children=[_row(await self.cards.get(each)) for each in await self.cards.children(card)],
            events=await self.cards.events(card),
            files=await self.cards.files(card),
            runs=await self.runs.of(card),
        )

    async def _check_seen(self, by: By, *cards: str) -> None:
        """Raise `UnknownCard` for a card that is not this actor's to see; its own it always is."""
        for card in cards:
            if card != by.card and not may_see(await self.cards.get(card), by):
                raise unknown(card)

    async def _depend(self, by: By, card: str, on: str) -> Card:
        def decide(found: Card) -> Change:
            check_lease(found, by) if by.role is Role.WORKER else check_right(found, "link", by)
            return Change(card=found, kind="linked", by=by.name, text=on)

        return await self.cards.link(on, card, decide)

    async def _record(self, card: str, kind: str, by: By, text: str) -> Card:
        change = partial(Change, kind=kind, by=by.name, text=text, origin=origin_of(by))
        return await self.cards.change(card, lambda found: change(card=found), promote)

    async def _store_file(self, by: By, card: Card, name: str, content: bytes) -> CardFile:
        file = await asyncio.to_thread(keep_file, self.home, card.id, name, content, by.name)
        said = Change(card=card, kind="attached", by=by.name, text=name)

        async def note(tx: Transaction, _card: Card) -> None:
            await self.cards.attach(tx, file)

        def decide(found: Card) -> Change:
            return replace(said, card=found)

        await self.cards.change(card.id, decide, promote, note)
        return file


def _ending(before: Card, order: Order, by: By) -> Ending | None:
    """How the run ends by this move."""
    if order.verb is Verb.COMPLETE:
        return Ending.PASSED if before.status is Status.REVIEW else Ending.COMPLETED
    if order.verb is Verb.BLOCK:
        return Ending.FAILED if before.status is Status.REVIEW else Ending.BLOCKED
    if order.verb is Verb.END:
        return order.ending
    return Ending.CANCELLED if by.role is not Role.BOARD else None


def _letter(card: Card, text: str, before: Card) -> str:
    """What the watchers are told; empty where they need not know."""
    if card.status is before.status:
        return ""
    name = f"{card.id} {card.title}"
    match card.status:
        case Status.DONE:
            return f"Done: {name}\n\n{card.summary}"
        case Status.BLOCKED:
            how = f"`/kanban unblock {card.id} ANSWER` continues it." if card.blocked is not Reason.DEPENDENCY else ""
            return f"Blocked ({card.blocked}): {name}\n\n{text}\n\n{how}".strip()
        case Status.CANCELLED:
            return f"Cancelled: {name}"
        case Status.REVIEW if card.validator == HUMAN:
            return f"For your review: {name}\n\n{card.summary}\n\n`/kanban complete {card.id} OK` accepts it."
        case _:
            return ""


def _row(card: Card) -> CardRow:
    return CardRow(
        id=card.id,
        board=card.board,
        title=card.title,
        status=card.status.value,
        assignee=card.assignee,
        priority=card.priority,
        tenant=card.tenant,
        parents_left=card.parents_left,
        created=card.created,
    )
