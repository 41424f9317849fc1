"""The tools `kanban_*`: what an agent does with cards, its own and others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, TypeVar

from hermes_agent.core.clock import moment
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.store.work.cards import Card, CardEvent, CardRow, Reason, Status
from hermes_agent.work.board.board import Board, CardView
from hermes_agent.work.board.new_cards import MAIN, NewCard, assignee_of
from hermes_agent.work.board.rules import By, Order, Verb

NEEDS = (Capability.SCHEDULE,)
SHOWN_EVENTS, MOST_LISTED = 30, 100
T = TypeVar("T")
Opened = Callable[[], AbstractAsyncContextManager[Board]]


class MovingTools:
    """The tools that change where cards stand. `opened` gives the board, `by` says who calls."""

    def __init__(self, opened: Opened, by: Callable[[CallContext], By]) -> None:
        self._board, self._by = opened, by

    async def _on(self, act: Callable[[Board], Awaitable[T]]) -> T:
        """Do something on the board; what it refuses is an answer for the model."""
        try:
            async with self._board() as board:
                return await act(board)
        except HermesError as error:
            raise error if isinstance(error, ToolError) else ToolError(str(error)) from error

    @tool(effect=Effect.WRITES, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_update(
        self, context: CallContext, card: str, title: str = "", body: str = "", priority: int = -1
    ) -> str:
        """Change the title, body or priority of a card."""
        given = {"title": title or None, "body": body or None, "priority": priority if priority >= 0 else None}
        return _said(await self._on(lambda board: board.update(self._by(context), card, **given)))

    @tool(effect=Effect.WRITES, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_delete(self, context: CallContext, card: str) -> str:
        """Delete a card that never ran; any other is archived."""
        return await self._on(lambda board: board.delete(self._by(context), card))

    @tool(effect=Effect.WRITES, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_assign(self, context: CallContext, card: str, assignee: str) -> str:
        """Give a card to a profile."""
        return _said(await self._on(lambda board: board.assign(self._by(context), card, assignee)))

    @tool(effect=Effect.WRITES, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_move(self, context: CallContext, card: str, status: Literal["triage", "todo", "ready"]) -> str:
        """Move a card; a running one is stopped."""
        return await self._move(context, card, Order(verb=Verb.MOVE, status=Status(status)))

    @tool(effect=Effect.WRITES, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_start(self, context: CallContext, card: str) -> str:
        """Have a waiting card begin as soon as there is room."""
        return await self._move(context, card, Order(verb=Verb.START))

    @tool(effect=Effect.WRITES, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_unblock(self, context: CallContext, card: str) -> str:
        """Let a card continue whose passing trouble is over; any other block is a person's."""
        return await self._move(context, card, Order(verb=Verb.UNBLOCK))

    @tool(effect=Effect.WRITES, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_cancel(self, context: CallContext, card: str) -> str:
        """Cancel a card; a running one is stopped."""
        return await self._move(context, card, Order(verb=Verb.CANCEL))

    @tool(effect=Effect.WRITES, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_archive(self, context: CallContext, card: str) -> str:
        """Archive a card that is done or cancelled."""
        return await self._move(context, card, Order(verb=Verb.ARCHIVE))

    @tool(effect=Effect.WRITES, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_link(self, context: CallContext, parent: str, child: str, remove: bool = False) -> str:
        """Make a card wait for another one (its parent), or no longer."""
        return _said(await self._on(lambda board: board.link(self._by(context), parent, child, remove=remove)))

    async def _move(self, context: CallContext, card: str, order: Order) -> str:
        return _said(await self._on(lambda board: board.move(self._by(context), card, order)))


class BoardTools(MovingTools):
    """The toolset `board`: a worker's own card needs no id."""

    @tool(effect=Effect.READS, core=False, origin=Origin.TOOL)
    async def kanban_show(self, context: CallContext, card: str = "") -> Answer:
        """Show a card (default: yours) with what its parents left, comments, files and runs."""
        by = self._by(context)
        return Answer(parts=tuple(shown(await self._on(lambda board: board.view(by, _id(card, by))))))

    @tool(effect=Effect.READS, core=False, origin=Origin.TOOL)
    async def kanban_list(self, context: CallContext, status: str = "", assignee: str = "", board: str = "") -> str:
        """List cards, the most urgent first."""
        _status(status)
        by = self._by(context)
        author = "" if by.sees_all else by.whose or by.name
        rows = await self._on(
            lambda found: found.cards.list_cards(
                board, status=status, assignee=assignee_of(assignee), author=author, limit=MOST_LISTED + 1
            )
        )
        more = ["There are more: name a status, an assignee or a board."] if len(rows) > MOST_LISTED else []
        return "\n".join([*map(line, rows[:MOST_LISTED]), *more]) or "There are no such cards."

    @tool(effect=Effect.READS, core=False, origin=Origin.RUNTIME)
    async def kanban_stats(self, context: CallContext) -> str:
        """Count the cards of each board by status."""
        if not self._by(context).sees_all:
            raise ToolError("Only the owner sees everybody's cards.")
        found = await self._on(lambda board: board.cards.stats())
        return "\n".join(f"{name}: {count} {status}" for name, status, count in found)

    @tool(effect=Effect.READS, core=False, origin=Origin.TOOL)
    async def kanban_log(self, context: CallContext, card: str = "", after: int = 0) -> Answer:
        """Show what happened to a card, in order.

        Args:
            after: number of the last event that you know
        """
        by = self._by(context)
        view = await self._on(lambda board: board.view(by, _id(card, by)))
        events = [each for each in view.events if each.number > after][:MOST_LISTED]
        return Answer(parts=tuple(_events(events)) or (Text(text="Nothing.", origin=Origin.RUNTIME),))

    @tool(effect=Effect.KEYED, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_create(  # noqa: PLR0913  what a card may say
        self,
        context: CallContext,
        title: str,
        body: str = "",
        assignee: str = "",
        parents: list[str] = [],  # noqa: B006  never changed
        priority: int = 2,
        workspace: str = "scratch",
        check: str = "",
        triage: bool = False,
        board: str = MAIN,
    ) -> str:
        """Put a card on the board: work for another process, which reads only the card.

        Args:
            assignee: profile that works on it
            parents: cards that must be done first
            priority: 0 (most urgent) to 4
            workspace: scratch, worktree:REPOSITORY or dir:FOLDER
            check: what accepts it: human, profile:NAME, or a check of the settings
            triage: it is vague and has to be divided first
        """
        new = NewCard(
            title=title,
            body=body,
            assignee=assignee,
            parents=tuple(parents),
            priority=priority,
            workspace=workspace,
            check=check,
            triage=triage,
            board=board,
            key=context.key,
        )
        created = await self._on(lambda board: board.create(self._by(context), new))
        return f"{created.card.id} is {created.card.status}." + ("" if created.is_new else " It was there already.")

    @tool(effect=Effect.KEYED, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_comment(self, context: CallContext, card: str, text: str) -> str:
        """Say something on a card, to its worker."""
        await self._on(lambda board: board.comment(self._by(context), card, text))
        return "Said."

    @tool(effect=Effect.WRITES, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_block(
        self,
        context: CallContext,
        why: str,
        reason: Literal["needs_input", "capability", "transient", "dependency"] = "needs_input",
        on: str = "",
        card: str = "",
    ) -> str:
        """Stop: your card (or another) cannot continue.

        Args:
            why: what is missing, for who can help
            on: the card it waits for (dependency)
        """
        by = self._by(context)
        return _said(await self._on(lambda board: board.block(by, _id(card, by), Reason(reason), why, on)))

    @tool(effect=Effect.WRITES, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_complete(
        self,
        context: CallContext,
        summary: str,
        metadata: str = "",
        artefacts: list[str] = [],  # noqa: B006  never changed
    ) -> str:
        """Your card is done.

        Args:
            summary: what you did, decided and checked, for the next worker
            metadata: facts for programs, as JSON
            artefacts: files of the workspace to keep
        """
        by = self._by(context)
        if not by.card:
            raise ToolError("A card is completed by whoever works on it, or by a person: `hermes kanban complete`.")
        return _said(await self._on(lambda board: board.complete(by, by.card, summary, metadata, artefacts)))

    @tool(effect=Effect.KEYED, needs=NEEDS, core=False, origin=Origin.RUNTIME)
    async def kanban_heartbeat(self, context: CallContext, note: str) -> str:
        """Note on your card how far you are."""
        by = self._by(context)
        if not by.card:
            raise ToolError("Only who works on a card reports its progress.")
        await self._on(lambda board: board.runs.progress(by.card, by.epoch, note))
        return "Noted."

    @tool(effect=Effect.WRITES, needs=(*NEEDS, Capability.FS_READ), paths=("path",), core=False, origin=Origin.RUNTIME)
    async def kanban_attach(self, context: CallContext, path: str, card: str = "") -> str:
        """Keep a copy of a file of your workspace with a card."""
        by = self._by(context)
        file = await self._on(lambda board: board.attach(by, _id(card, by), path, context.workspace))
        return f"{file.name} ({file.bytes:,} bytes) is kept with the card."

    @tool(effect=Effect.WRITES, needs=(*NEEDS, Capability.FS_READ), core=False, origin=Origin.RUNTIME)
    async def kanban_fetch(self, context: CallContext, name: str, card: str = "") -> str:
        """Copy a file of a card (yours, or one that yours waited for) into your folder."""
        by = self._by(context)
        path = await self._on(lambda board: board.fetch(by, _id(card, by), name, context.workspace))
        return f"It is here now: {path}"


def shown(view: CardView) -> list[Text]:
    """A card for a model, each part with the label of its author."""
    card = view.card
    waits = f"\nIt waits for {card.parents_left} card(s)." if card.parents_left else ""
    blocked = f"\nBlocked: {card.blocked}" if card.blocked else ""
    parts = [
        _runtime(
            f"{card.id}: {card.status}, priority {card.priority}, board {card.board}, assignee "
            f"{card.assignee or 'default'}, workspace {card.folder or card.workspace}{waits}{blocked}\n"
        ),
        Text(text=f"{card.title}\n\n{card.body}".strip(), origin=card.origin),
    ]
    if card.summary:
        parts += [_runtime("\n\nSummary:\n"), Text(text=card.summary, origin=Origin.TOOL)]
    parts += [_runtime("\n\nParents:\n"), *_rows(view.parents)] if view.parents else []
    parts += [_runtime("\n\nWaiting for it:\n"), *_rows(view.children)] if view.children else []
    parts += [_runtime(f"\nFile {each.name}, {each.bytes:,} bytes: kanban_fetch copies it") for each in view.files]
    parts += [_runtime(f"\nRun {each.epoch}: {each.kind} {each.outcome or 'running'}") for each in view.runs]
    return [*parts, _runtime("\n\nLog:\n"), *_events(view.events[-SHOWN_EVENTS:])]


def line(row: CardRow) -> str:
    """A card in a list."""
    waits = f", waits for {row.parents_left}" if row.parents_left else ""
    return f"{row.id} [{row.status}] p{row.priority} {row.title} ({row.assignee or 'default'}{waits})"


def _rows(rows: Sequence[CardRow]) -> list[Text]:
    return [Text(text=f"{line(each)}\n", origin=Origin.TOOL) for each in rows]


def _events(events: Sequence[CardEvent]) -> list[Text]:
    parts = []
    for each in events:
        parts.append(_runtime(f"{each.number}. {moment(each.at)} {each.kind} by {each.by}"))
        parts.append(Text(text=f": {each.text}\n" if each.text else "\n", origin=each.origin))
    return parts


def _runtime(text: str) -> Text:
    return Text(text=text, origin=Origin.RUNTIME)


def _id(card: str, by: By) -> str:
    if not (card or by.card):
        raise ToolError("Say which card: kanban_list shows them.")
    return card or by.card


def _status(status: str) -> None:
    if status and status not in set(Status):
        raise ToolError(f"There is no status `{status}`. There are: {', '.join(Status)}.")


def _said(card: Card) -> str:
    return f"{card.id} is {card.status}."
