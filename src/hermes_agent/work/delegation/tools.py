"""Toolset `delegation`: `delegate_task` starts agents, `agents` looks after them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from difflib import get_close_matches
from typing import Literal

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import BadArguments, Refused, ToolError
from hermes_agent.core.messages import LABELS, Origin, Text
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.store.work.children import Child, Delivery
from hermes_agent.work.delegation.delegation import Delegation, Order
from hermes_agent.work.delegation.report import LOST, log_of, report_of, shown
from hermes_agent.work.delegation.settings import DelegationSettings, Isolation
from hermes_agent.work.delegation.terms import Parent, Role, Task, check_tasks, mandate_of_child, narrowed

ParentOf = Callable[[CallContext], Awaitable[Parent]]
Worktree = Callable[[CallContext, int], Awaitable[tuple[str, str, str]]]
"""A git worktree for a child of this call: its folder, branch and commit. Raises `ToolError`."""
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
    """What a call asks for all its tasks."""

    toolsets: tuple[str, ...]
    role: Role
    isolation: Isolation
    background: bool


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
        parent = await self._means.parent_of(call)
        if background and parent.depth:
            raise Refused("An agent waits for its own agents: only a conversation starts some in the background.")
        role = role or Role.LEAF
        chosen = narrowed(parent, toolsets or (), role, self._means.known(), self._settings.max_depth)
        where = Isolation(isolation) if isolation else self._settings.isolation
        wish = Wish(toolsets=chosen, role=role, isolation=where, background=background)
        goals: dict[str, str] = {}
        for n, task in enumerate(wanted, 1):
            order = await self._order(call, parent, task, n, wish)
            goals[await self._delegation.start(order)] = task.goal[:200]
        async with call.delegating(goals):
            found = [] if background else await self._delegation.wait(list(goals), call.progress)
        repeats = any(task.goal.strip() == parent.last_said.strip() for task in wanted)
        notes = [REPEATED] if repeats and not parent.depth else []
        return answer_to_call(goals, found, notes, background=background)

    async def _order(self, call: CallContext, parent: Parent, task: Task, n: int, wish: Wish) -> Order:
        folder, branch, base = call.workspace, "", ""
        if wish.isolation is Isolation.WORKTREE:
            folder, branch, base = await self._means.worktree(call, n)
        context = task.context
        if len(context.encode()) > LARGEST_CONTEXT:
            context = f"It is kept whole in `{await self._means.keep(call.workspace, context)}`: read that file."
        now, left = self._means.clock.now(), call.seconds_left()
        child = Child(
            session="",
            parent=call.session,
            run=parent.run,
            call=parent_call(call),
            n=n,
            goal=task.goal,
            role=wish.role,
            isolation=wish.isolation,
            folder=folder,
            branch=branch,
            base=base,
            queue="",
            delivery=Delivery.MAIL if wish.background else Delivery.CALL,
            created=now,
        )
        return Order(
            parent=parent,
            mandate=mandate_of_child(parent, self._settings, wish.toolsets, now=now, seconds_left=left),
            child=child,
            key=call.key,
            context=context,
            origin=LABELS[call.trust],
            model=self._settings.model or parent.record.model,
        )

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
                parent = await self._means.parent_of(call)
                await self._delegation.say(child, text, parent.principal, LABELS[call.trust], call.key)
                return _said(f"Told {child.session}. Its next report comes as a message.")
            case "stop":
                stopped = await self._delegation.stop(child)
                return _said(f"{child.session} {'is stopped' if stopped else 'has ended already'}.")
            case "log":
                lines = log_of(await self._delegation.log(child.session))[-LAST_STEPS:]
                label = await self._delegation.label(child.session)
                return Answer(parts=(Text(text="\n".join([line_of(child), *lines]), origin=label),))
            case "wait":
                async with call.delegating({child.session: child.goal[:200]}):
                    await self._delegation.wait([child.session], call.progress)
                return _said(f"{child.session} has ended; its report comes as a message.")
            case _:
                report = report_of(child)
                return Answer(parts=(Text(text=shown(child, report), origin=report.label),))


def parent_call(call: CallContext) -> str:
    """The id of a call within its session."""
    return call.key.removeprefix(f"{call.session}-")


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
    hint = f"Did you mean `{near[0]}`?" if near else "There are none." if not ids else f"There are: {', '.join(ids)}."
    raise ToolError(f"No agent of this conversation has the id `{name[:80]}`.", hint=hint)


def _said(text: str) -> Answer:
    return Answer(parts=(Text(text=text, origin=Origin.RUNTIME),))
