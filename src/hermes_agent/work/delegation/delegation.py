"""Delegation: terms of children, which narrow and never widen; starts children, waits for them, ends and stops them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from enum import StrEnum
from typing import Protocol

import msgspec

from hermes_agent.agent.mailbox import Change
from hermes_agent.core.chat import Busy, Conversation, Inbound, Principal, Standings
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import BadArguments, HermesError, Refused, UnknownSession
from hermes_agent.core.events import Entry, Outcome, Pinned, Replied, RunEnded, ToolStarted
from hermes_agent.core.mandate import Mandate, Work
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.spending import Limit, Scope
from hermes_agent.host.nearest import nearest_key
from hermes_agent.host.tasks import spawn
from hermes_agent.runs.front import Assignment, Hermes
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.work.children import HELD_BACK, Child, Delivery
from hermes_agent.work.delegation.report import REMOVED, Report, report_of, shown
from hermes_agent.work.delegation.settings import DelegationSettings, Isolation

MOST_TASKS = 10
DELEGATION = "delegation"
NEVER = frozenset({"clarify", "memory", "sending", "code", "cron", "board", "goals"})
"""Toolsets that no child has: they speak to people, outlive the child, or call tools unseen."""
LEAST = ("todo",)
WORKER = """\
# Your work
You work for another agent, not for a person: nobody reads along, and nobody answers questions. Do the goal in the \
first message, and no more than it asks. Your last message is your report. It says what you did, what you did not do \
and why, and how you checked it. Name files by their whole paths. Claim no check that you did not run."""
SPLITTING = " You may give parts of it to agents of your own (delegate_task)."


class Role(StrEnum):
    """What a child is: a `leaf` works alone, an `orchestrator` may delegate while there is a level below it."""

    LEAF = "leaf"
    ORCHESTRATOR = "orchestrator"


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One task of a call: what to do, and what the agent has to know for it."""

    goal: str
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """The session that delegates, as it is during the call: its run, its toolsets, the capabilities that it lacks, and
    its pins. `principal` is who the children work for. `money` and `tokens` are what its limits leave, `of_job` is the
    limit of its job (None: it has none, or no job yet)."""

    record: SessionRecord
    mandate: Mandate | None
    run: str
    principal: Principal
    toolsets: tuple[str, ...]
    lacks: tuple[Capability, ...] = ()
    pins: tuple[Pinned, ...] = ()
    money: int | None = None
    tokens: int | None = None
    of_job: Limit | None = None
    last_said: str = ""

    @property
    def depth(self) -> int:
        """How many sessions are above it."""
        return self.mandate.depth if self.mandate else 0

    @property
    def job(self) -> str:
        """The job whose limits its children share: its own, or one for the children of this run."""
        return self.record.job or f"{self.record.id}.{self.run}"


def check_tasks(goal: str, context: str, tasks: Sequence[Task]) -> list[Task]:
    """The tasks of a call. Raises `BadArguments`."""
    alone = [Task(goal=goal, context=context)] if goal.strip() or not tasks else []
    wanted = [*alone, *tasks]
    if not alone and context.strip():
        raise BadArguments("`context` belongs to `goal` - at `$.context`", hint="Give each task its own `context`.")
    for number, task in enumerate(wanted):
        if not task.goal.strip():
            where = "$.goal" if alone and not number else f"$.tasks[{number - len(alone)}].goal"
            raise BadArguments(
                f"There is nothing to do - at `{where}`", hint="Give `goal`, or `tasks` with a goal each."
            )
    if len(wanted) > MOST_TASKS:
        raise BadArguments(
            f"{len(wanted)} tasks are more than {MOST_TASKS} - at `$.tasks`", hint="Make fewer calls of it."
        )
    return wanted


def narrowed(
    parent: Parent, asked: Sequence[str], role: Role, known: Collection[str], settings: DelegationSettings
) -> tuple[str, ...]:
    """The toolsets of a child. Raises `BadArguments` for an unknown name, `Refused` for one that it cannot have."""
    deepest, never = settings.max_depth, NEVER if settings.inherit_mcp else NEVER | {"mcp"}
    if parent.depth >= deepest:
        raise Refused(
            f"Agents at depth {parent.depth} start no others (`delegation.max_depth` is {deepest}).",
            hint="Do it yourself, and say in your report what is left.",
        )
    splits = role is Role.ORCHESTRATOR and parent.depth + 1 < deepest
    has = tuple(each for each in parent.toolsets if each not in never and (each != DELEGATION or splits))
    for name in asked:
        if name not in known:
            near = nearest_key(name, known)
            meant = f"Did you mean `{near}`?" if near else f"You can give: {', '.join(has)}."
            raise BadArguments(f"There is no toolset `{name}` - at `$.toolsets`", hint=meant)
        if name not in has:
            raise Refused(
                f"The toolset `{name}` cannot be given: delegation narrows what you have, and never widens it.",
                hint=f"You can give: {', '.join(has) or 'none'}.",
            )
    chosen = tuple(each for each in has if not asked or each in asked or (each == DELEGATION and splits))
    return chosen or LEAST


def mandate_of_child(
    parent: Parent, settings: DelegationSettings, toolsets: tuple[str, ...], *, now: float, end: float | None
) -> Mandate:
    """The mandate of a child that begins now. It inherits the `end`; each gets at most half of what is left of
    money and tokens, and all of a new job together no more."""
    above = parent.mandate
    until = now + settings.child_seconds
    money = None if parent.money is None else parent.money // 2
    tokens = None if parent.tokens is None else parent.tokens // 2
    shared = parent.of_job or Limit(scope=Scope.JOB)
    if not parent.record.job:
        shared = Limit(scope=Scope.JOB, money=money, tokens=tokens)
    return Mandate(
        kind=Work.CHILD,
        parent=parent.record.id,
        depth=parent.depth + 1,
        toolsets=toolsets,
        denied=parent.lacks,
        turns=settings.max_turns,
        until=until if end is None else min(until, end),
        money=money,
        tokens=tokens,
        job_money=shared.money,
        job_tokens=shared.tokens,
        effort=settings.effort or (above.effort if above else ""),
        role=WORKER + (SPLITTING if DELEGATION in toolsets else ""),
    )


SOURCE, NEWS = "delegate", "child"
"""The sources of a child's first message, and of the mail about its end."""
LOOK = 2.0
"""Seconds after which a waiting call reads the rows of its children again, whatever it heard."""
STOPPED = "Stopped."


class Apart(Protocol):
    """Processes that work on one child each.

    - `queue` is the queue of a child's process;
    - `start` starts it once, also when called again, and has `Delegation.recover` called when it has ended.
    """

    def queue(self, session: str) -> str: ...

    async def start(self, child: Child) -> None: ...


class Delegation:
    """The children of all sessions of a home. `apart` starts processes for single children (None: this process works on
    all)."""

    def __init__(
        self,
        *,
        hermes: Hermes,
        store: Store,
        clock: Clock,
        standings: Standings,
        settings: DelegationSettings,
        apart: Apart | None = None,
    ) -> None:
        self._hermes, self._store, self._clock = hermes, store, clock
        self._standings, self._settings, self._apart = standings, settings, apart
        self.children = store.children

    # 1. Start and wait

    async def start(self, parent: Parent, child: Child, mandate: Mandate, said: Text, key: str) -> str:
        """Start a child (its row without session and queue) with what it is told, or find the one that an earlier
        attempt of the call with this key started; its session."""
        scheduler = self._hermes.scheduler
        inbound = Inbound(
            source=SOURCE,
            source_id=f"{key}:{child.n}",
            principal=parent.principal,
            conversation=Conversation(
                platform=Work.CHILD, chat_kind="folder", chat=child.parent, thread=f"{child.call}:{child.n}"
            ),
            parts=(said,),
            received=child.created,
            pins=parent.pins,
        )
        apart = self._apart if child.isolation == Isolation.PROCESS else None

        async def add(tx: Transaction, session: str) -> None:
            queue = apart.queue(session) if apart else scheduler.queue
            await self.children.add(tx, replace(child, session=session, queue=queue), self._settings.max_children)

        work = Assignment(mandate=mandate, job=parent.job, queue=HELD_BACK, beside=add)
        model = self._settings.model or parent.record.model
        submitted = await self._hermes.start_session(inbound, workspace=child.folder, model=model, work=work)
        scheduler.expect(child.parent)
        await self.attend(submitted.session)
        return submitted.session

    async def attend(self, session: str) -> None:
        """See to it that somebody works on a child that has not ended: this process, or one of its own."""
        child = await self.children.get(session)
        if child is None or not child.is_open:
            return
        if child.isolation == Isolation.PROCESS and self._apart and child.queue == self._apart.queue(session):
            await self._apart.start(child)
            return
        self._hermes.scheduler.enqueue(session)

    async def recover(self, session: str) -> None:
        """Work here on a child whose process has ended before it."""
        child = await self.children.get(session)
        if child is not None and child.is_open:
            await self._store.workers.reap()  # That process holds the lane until somebody notices.
            await self.hand_over([child], self._hermes.scheduler.queue)
            self._hermes.scheduler.enqueue(session)

    async def resume_agents(self, parent: str) -> list[Child]:
        """Work on the children of a session that a process left behind; the open ones."""
        left = [child for child in await self.children.of(parent) if child.is_open]
        if left:
            self._hermes.scheduler.expect(parent)
        for child in left:
            await self.attend(child.session)
        return left

    async def wait(self, sessions: Sequence[str], tell: Callable[[str], None]) -> list[Child]:
        """These children (without deleted ones), once all have ended; `tell` gets a line for each step of one."""
        followers: dict[str, asyncio.Task[None]] = {}
        try:
            while open_ := [child for child in await self._found(sessions) if child.is_open]:
                idle = [child for child in open_ if child.session not in followers or followers[child.session].done()]
                followers |= {child.session: spawn(self._follow(child, tell), name="follow") for child in idle}
                tasks = [followers[child.session] for child in open_]
                await asyncio.wait(tasks, timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in followers.values():
                task.cancel()
        return await self._found(sessions)

    async def _found(self, sessions: Sequence[str]) -> list[Child]:
        return [child for each in sessions if (child := await self.children.get(each)) is not None]

    async def _follow(self, child: Child, tell: Callable[[str], None]) -> None:
        turns, cost = 0, 0.0
        with suppress(UnknownSession):
            async with aclosing(self._hermes.watch(child.session)) as events:
                async for seen in events:
                    match seen.event:
                        case Replied(cost=more):
                            turns, cost = turns + 1, cost + (more or 0.0)
                        case ToolStarted(summary=summary):
                            tell(f"{child.n}. {' '.join(summary.split())[:100]} ({turns} turns, ${cost:.4f})")
                        case RunEnded() if not await self._is_open(child.session):
                            return
                        case _:
                            pass

    async def _is_open(self, session: str) -> bool:
        return any(child.is_open for child in await self._found([session]))

    async def log(self, session: str) -> tuple[list[Entry], Origin]:
        """The log of a child, and the worst label of what it has in view."""
        return await self._store.history.entries(session), (await self._hermes.view(session)).label

    # 2. End

    async def ending(self, session: str, run: str, outcome: str, report: Report) -> Change:
        """The change that ends a child: its report goes to the call that waits for it, or as mail to its parent."""
        child = await self.children.get(session)
        parent = await self._store.sessions.get(child.parent) if child else None
        now = self._clock.now()

        async def change(tx: Transaction) -> None:
            ended = await self.children.end(tx, session, outcome, report.body, now)
            if ended is not None and ended.delivery is Delivery.MAIL and parent is not None:
                await self._post(tx, ended, parent, run)

        return change

    def leaving(self, record: SessionRecord, run: str, open_calls: Collection[str], *, stopped: bool) -> Change:
        """The change for the end of a parent's run: children that its calls waited for are stopped with it, or go on,
        and their reports come as mail. `open_calls` have no result in the log."""
        now = self._clock.now()

        async def change(tx: Transaction) -> None:
            for child in await self.children.awaited(tx, record.id, run):
                if child.is_open and stopped:
                    await self.children.abandon(tx, child.session, STOPPED, now)
                elif child.is_open:
                    await self.children.send(tx, child.session)
                elif child.call in open_calls and not stopped:
                    await self._post(tx, child, record, child.run)

        return change

    async def _post(self, tx: Transaction, child: Child, parent: SessionRecord, run: str) -> None:
        report, (principal, queue) = report_of(child), await self.children.address(tx, child)
        line = f"An agent has ended ({child.outcome}): {' '.join(child.goal.split())[:120]}"
        letter = Inbound(
            source=NEWS,
            source_id=f"{child.session}:{run}",
            principal=self._standings.principal(principal),
            conversation=Conversation.parse(parent.conversation),
            parts=(Text(text=shown(child, report), origin=report.label),),
            received=child.ended or self._clock.now(),
            notice=line if self._settings.tell_background else "",
        )
        await self._store.inbox.accept(letter, parent.id, queue, tx=tx)

    # 3. Stop, say, hand over

    async def stop(self, child: Child, reason: str = STOPPED) -> bool:
        """Stop a child and what it started, in whichever process it is. False where it has ended."""
        if not child.is_open:
            return False
        await self._store.workers.reap()  # What a dead worker holds could not be told to stop.
        ended = await self.ending(child.session, "stopped", Outcome.STOPPED, Report(summary=reason))

        async def change(tx: Transaction) -> None:
            if await self.children.stop(tx, child.session, reason, self._clock.now()):
                await ended(tx)

        await self._store.write(change)
        return True

    async def say(self, child: Child, text: str, who: Principal, origin: Origin, identity: str) -> None:
        """Say something to a child. One that has ended goes on, and its next report comes as mail to its parent. Raises
        `HermesError` where its worktree is gone."""
        if not child.is_open and report_of(child).diff.endswith(REMOVED):
            raise HermesError(f"{child.session} changed nothing, and its worktree is gone: start another agent.")
        scheduler, now = self._hermes.scheduler, self._clock.now()
        inbound = Inbound(
            source=SOURCE,
            source_id=identity,
            principal=who,
            conversation=Conversation(platform=Work.CHILD, chat_kind="folder", chat=child.parent, thread=child.call),
            parts=(Text(text=text, origin=origin),),
            received=now,
            busy=Busy.STEER,
        )

        async def change(tx: Transaction) -> None:
            if await self._store.inbox.accept(inbound, child.session, scheduler.queue, tx=tx) is not None:
                await self.children.reopen(tx, child.session, scheduler.queue)

        await self._store.write(change)
        scheduler.expect(child.parent)
        scheduler.enqueue(child.session)

    async def hand_over(self, children: Sequence[Child], queue: str) -> None:
        """Leave children, and the mail about them, to the workers of another queue."""
        await self._store.write(lambda tx: self.children.hand_over(tx, children, queue))
