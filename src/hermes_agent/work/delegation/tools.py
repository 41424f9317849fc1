"""Toolset `delegation`: `delegate_task` starts agents, `agents` looks after them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from difflib import get_close_matches
from typing import Literal

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import BadArguments, Refused, ToolError
from hermes_agent.core.messages import LABELS, Origin, Text
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.store.work.children import Child, Delivery
from hermes_agent.work.delegation.delegation import (
    Delegation,
    Parent,
    Role,
    Task,
    check_tasks,
    mandate_of_child,
    narrowed,
)
from hermes_agent.work.delegation.report import LOST, log_of, report_of, shown
from hermes_agent.work.delegation.settings import DelegationSettings, Isolation

ParentOf = Callable[[str, Collection[str]], Awaitable[Parent]]
"""What a session has to give, for the people (by key) for whom its run works."""
Worktree = Callable[[str, str, str], Awaitable[tuple[str, str, str]]]
"""A git worktree of that name for a session's child, below a folder: its folder, branch and commit. Raises
`ToolError`."""
Keep = Callable[[str, str], Awaitable[str]]
"""Saves a text for a workspace; the file's path."""
LARGEST_CONTEXT = 100_000
"""Bytes of context that a first message holds; more is kept in a file."""
REPEATED = "A goal repeats the last message word for word; the agent knows nothing else of this conversation."
LAST_STEPS = 40
GONE = "Agent {session}: {lost}. Its session was deleted."


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What the tools need of the rest of the system. `known` are the names of all toolsets."""

    parent_of: ParentOf
    worktree: Worktree
    keep: Keep
    known: Callable[[], Sequence[str]]
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a call asks for all its tasks, with the key and the label of its words. `asked`: toolsets; `until`: the end
    of the run above, in seconds since 1970."""

    key: str
    origin: Origin
    asked: Sequence[str] = ()
    role: Role = Role.LEAF
    isolation: Isolation | None = None
    background: bool = True
    until: float | None = None


class DelegationTools:
    """The toolset `delegation`."""

    def __init__(self, delegation: Callable[[], Delegation], settings: DelegationSettings, means: Means) -> None:
        self._made, self._settings, self._means = delegation, settings, means

    @property
    def _delegation(self) -> Delegation:
        return self._made()

    @tool(effect=Effect.EXEC, needs=(Capability.SPAWN,), origin=Origin.RUNTIME)
    async def delegate_task(  # noqa: PLR0913 - each is a word of the tool's schema
        self,
        call: CallContext,
        goal: str = "",
        context: str = "",
        tasks: list[Task] | None = None,
        toolsets: list[str] | None = None,
        role: Role | None = None,
        background: bool = False,
        isolation: Literal["task", "worktree", "process"] | None = None,
    ) -> Answer:
        """Give work to agents of their own, which see nothing of this conversation, and get their reports. For parts
        that can be done apart, side by side (tasks), or that would fill this conversation. Check what matters yourself.

        Args:
            context: all that the agent has to know
            toolsets: fewer than you have
            role: an orchestrator may delegate parts, a leaf (default) not
            background: answer at once; each report comes as a message
            isolation: worktree gives each a git worktree and branch
        """
        wanted = check_tasks(goal, context, tasks or [])
        parent = await self._means.parent_of(call.session, call.speakers)
        if background and parent.depth:
            raise Refused("An agent waits for its own agents: only a conversation starts some in the background.")
        left = call.seconds_left()
        wish = Wish(
            key=call.key,
            origin=LABELS[call.trust],
            asked=toolsets or (),
            role=role or Role.LEAF,
            isolation=Isolation(isolation) if isolation else None,
            background=background,
            until=None if left is None else self._means.clock.now() + left,
        )
        goals = await self.start(parent, wanted, wish)
        async with call.delegating(goals):
            found = [] if background else await self._delegation.wait(list(goals), call.progress)
        repeats = any(task.goal.strip() == parent.last_said.strip() for task in wanted)
        notes = [REPEATED] if repeats and not parent.depth else []
        return answer_to_call(goals, found, notes, background=background)

    async def start(self, parent: Parent, tasks: Sequence[Task], wish: Wish) -> dict[str, str]:
        """Start children, or find those of an earlier attempt; their sessions with the goals in brief."""
        toolsets = narrowed(parent, wish.asked, wish.role, self._means.known(), self._settings)
        goals: dict[str, str] = {}
        for n, task in enumerate(tasks, 1):
            goals[await self._start(parent, task, n, wish, toolsets)] = task.goal[:200]
        return goals

    async def _start(self, parent: Parent, task: Task, n: int, wish: Wish, toolsets: tuple[str, ...]) -> str:
        session, isolation = parent.record.id, wish.isolation or self._settings.isolation
        folder, branch, base = parent.record.workspace, "", ""
        if isolation is Isolation.WORKTREE:
            folder, branch, base = await self._means.worktree(session, f"{wish.key}:{n}", folder)
        context = task.context
        if len(context.encode()) > LARGEST_CONTEXT:
            kept = await self._means.keep(parent.record.workspace, context)
            context = f"It is kept whole in `{kept}`: read that file."
        now = self._means.clock.now()
        child = Child(
            session="",
            parent=session,
            run=parent.run,
            call=wish.key.removeprefix(f"{session}-"),
            n=n,
            goal=task.goal,
            role=wish.role,
            isolation=isolation,
            folder=folder,
            branch=branch,
            base=base,
            queue="",
            delivery=Delivery.MAIL if wish.background else Delivery.CALL,
            created=now,
        )
        told = f"\n\nWhat you need to know:\n{context}" if context.strip() else ""
        said = Text(text=f"Your goal: {task.goal}{told}", origin=wish.origin)
        mandate = mandate_of_child(parent, self._settings, toolsets, now=now, end=wish.until)
        return await self._delegation.start(parent, child, mandate, said, wish.key)

    @tool(
        effect=Effect.KEYED,
        needs=(Capability.SPAWN,),
        reads_when="action=list|show|log|wait",
        core=False,
        origin=Origin.RUNTIME,
    )
    async def agents(
        self,
        call: CallContext,
        action: Literal["list", "show", "log", "say", "wait", "stop"] = "list",
        id: str = "",  # noqa: A002 - the model's word for it
        text: str = "",
    ) -> Answer:
        """Look after the agents that this conversation started: list, show (report), log (latest steps), say (a
        message; one that has ended goes on), wait (for its report), stop.
        """
        mine = await self._delegation.children.of(call.session)
        if action == "list":
            return Answer(parts=(Text(text="\n".join(map(line_of, mine)) or "There are none.", origin=Origin.MODEL),))
        child = named(mine, id)
        match action:
            case "say":
                if not text.strip():
                    raise BadArguments("There is nothing to say - at `$.text`")
                parent = await self._means.parent_of(call.session, call.speakers)
                await self._delegation.say(child, text, parent.principal, LABELS[call.trust], call.key)
                return _said(f"Told {child.session}. Its next report comes as a message.")
            case "stop":
                stopped = await self._delegation.stop(child)
                return _said(f"{child.session} {'is stopped' if stopped else 'has ended already'}.")
            case "log":
                entries, label = await self._delegation.log(child.session)
                lines = [line_of(child), *log_of(entries)[-LAST_STEPS:]]
                return Answer(parts=(Text(text="\n".join(lines), origin=label),))
            case "wait":
                async with call.delegating({child.session: child.goal[:200]}):
                    await self._delegation.wait([child.session], call.progress)
                return _said(f"{child.session} has ended; its report comes as a message.")
            case _:
                report = report_of(child)
                return Answer(parts=(Text(text=shown(child, report), origin=report.label),))


def answer_to_call(goals: dict[str, str], found: Sequence[Child], notes: Sequence[str], *, background: bool) -> Answer:
    """What `delegate_task` answers: a part for each report, with the label of what that child read."""
    if background:
        lines = [f"{session}: {goal}" for session, goal in goals.items()]
        return _said("\n".join([*notes, "Started; each report comes as a message:", *lines]))
    parts = [Text(text=f"{note}\n\n", origin=Origin.RUNTIME) for note in notes]
    by_session = {child.session: child for child in found}
    for number, session in enumerate(goals):
        gap = "\n\n" if number else ""
        if (child := by_session.get(session)) is None:
            parts.append(Text(text=gap + GONE.format(session=session, lost=LOST), origin=Origin.RUNTIME))
        else:
            report = report_of(child)
            parts.append(Text(text=gap + shown(child, report), origin=report.label))
    return Answer(parts=tuple(parts), is_error=bool(found) and all(child.outcome != "answered" for child in found))


def line_of(child: Child) -> str:
    """A child in one line."""
    return f"{child.session}  {child.outcome or child.state}  {' '.join(child.goal.split())[:100]}"


def named(children: Sequence[Child], name: str) -> Child:
    """The child of that session, or a unique beginning of it. Raises `ToolError` with the nearest."""
    found = [child for child in children if name and child.session.startswith(name)]
    if len(found) == 1:
        return found[0]
    ids = [child.session for child in children]
    near = get_close_matches(name, ids, 1, 0.3)
    hint = f"Did you mean {near[0]}?" if near else "There are none." if not ids else f"There are: {', '.join(ids)}."
    raise ToolError(f"{f'There is no agent {name[:80]}.' if name else 'Say which agent.'} {hint}")


def _said(text: str) -> Answer:
    return Answer(parts=(Text(text=text, origin=Origin.RUNTIME),))
