"""Pursues goals: notes the end of a run, claims the check that is due, and goes on or stops by what it gives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from hermes_agent.agent.mailbox import Change
from hermes_agent.agent.session import Session
from hermes_agent.agent.stop import NEW_MESSAGE, WITHDRAWN
from hermes_agent.core.chat import Busy, Content, Conversation, Inbound, Letter, Principal
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, LimitReached, LostLease
from hermes_agent.core.events import Entry, Notice, RunEnded
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.spending import Scope
from hermes_agent.host.tasks import spawn
from hermes_agent.runs.front import Hermes
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.work.goal_rounds import MOST_ATTEMPTS, Round
from hermes_agent.store.work.goals import Check, Goal, State
from hermes_agent.work.goals.checks import Checker, effects_of, person_spoke, unapproved_in
from hermes_agent.work.goals.rules import SOURCE, Decision, Found, after_run, blocked, continuation, decide, reported
from hermes_agent.work.goals.settings import GoalSettings

PEER_SECONDS = 5.0
"""Seconds between two looks at a check that another process holds, and after a failure."""
MOST_AT_ONCE = 8
"""Checks and waits of one process at a time."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PursuitContext:
    """What goals need of the system around them. `principal` gives a principal by key, `by_outbox` says whether news
    for a platform go through the outbox, `show` writes the goal's file. `sessions`: whose goals this process pursues
    (None: all of its queue)."""

    store: Store
    hermes: Hermes
    clock: Clock
    settings: GoalSettings
    checker: Checker
    principal: Callable[[str], Principal]
    by_outbox: Callable[[str], bool]
    show: Callable[[Goal], Awaitable[None]]
    sessions: Collection[str] | None = None


class Closing:
    """Adds to the commit of a run's end that its goal's criteria are due. `rung` is called with the session."""

    def __init__(self, store: Store, settings: GoalSettings, queue: str, rung: Callable[[str], None]) -> None:
        self._store, self._settings, self._queue, self._rung = store, settings, queue, rung

    def changes(self, session: Session, ended: RunEnded) -> Sequence[Change]:
        """See `agent.agent.Closing`."""
        if ended.reason in (NEW_MESSAGE, WITHDRAWN):
            return ()
        goals, rounds = self._store.goals, self._store.goal_rounds
        run, after = session.run, max(0, session.began - 1)

        async def change(tx: Transaction) -> None:
            goal = await goals.end_run(tx, session.id, lambda goal: after_run(goal, ended, self._settings))
            if goal is not None and goal.state is State.CHECKING:
                await rounds.queue(tx, goal, self._queue, run, after)
            if goal is not None and goal.untold:
                tx.rings.add("")
            self._rung(session.id)

        return (change,)


class Pursuit:
    """Checks goals as a source of the alarm (`runs.alarm.Source`): claims due checks, looks at waiting goals, and tells
    news. A check that was begun goes on after a crash under the same exec ids."""

    def __init__(self, around: PursuitContext) -> None:
        self._around = around
        self._store, self._clock = around.store, around.clock
        self._goals, self._rounds = around.store.goals, around.store.goal_rounds
        self._queue = around.hermes.scheduler.queue
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.ring: Callable[[], None] = lambda: None
        """Asks the alarm to look again."""

    # 1. What is due

    @property
    def _sessions(self) -> list[str] | None:
        return None if self._around.sessions is None else sorted(self._around.sessions)

    async def next_due(self) -> float | None:
        """See `runs.alarm.Source`."""
        if len(self._tasks) < MOST_AT_ONCE and await self._rounds.ready(self._queue, self._sessions):
            return 0.0
        times = [self._due_at(goal) for goal in await self._mine()]
        if await self._rounds.peers_check(self._queue):
            times.append(self._clock.now() + PEER_SECONDS)
        return min((each for each in times if each is not None), default=None)

    def _due_at(self, goal: Goal) -> float | None:
        if goal.id in self._tasks:
            return None
        return 0.0 if goal.untold or goal.wait_exec else goal.wait_until

    async def _mine(self) -> list[Goal]:
        """The goals with something due that this process looks after."""
        found = await self._goals.due()
        if self._around.sessions is not None:
            return [goal for goal in found if goal.session in self._around.sessions]
        lanes = [await self._store.read(partial(self._lane, goal.session)) for goal in found]
        return [goal for goal, (_, queue) in zip(found, lanes, strict=True) if queue == self._queue]

    async def _lane(self, session: str, tx: Transaction) -> tuple[int, str]:
        return await self._rounds.lane(tx, session, hold=False)

    async def fire(self) -> None:
        """See `runs.alarm.Source`."""
        now = self._clock.now()
        for goal in await self._mine():
            due = self._due_at(goal)
            if due is None or due > now:
                continue
            act = self._tell(goal) if goal.untold else self._wait(goal) if goal.wait_exec else self.look_at(goal.id)
            self._spawn(goal.id, act)
        while len(self._tasks) < MOST_AT_ONCE:
            if (claimed := await self._rounds.claim(self._queue, self._sessions)) is None:
                return
            self._spawn(claimed.lease.id, self._work(claimed))

    def _spawn(self, key: str, act: Awaitable[object]) -> None:
        async def run() -> None:
            # Boundary: one job.
            try:
                await act
            except HermesError as error:
                log.warning("goal %s: %s", key, error)
                await self._clock.sleep(PEER_SECONDS)  # Only then is it due again.
            except Exception:
                log.exception("goal %s", key)
            finally:
                del self._tasks[key]
                self.ring()

        self._tasks[key] = spawn(run(), name=f"goal {key}")

    async def settled(self) -> None:
        """Wait until no check is under way here."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def close(self) -> None:
        """Put the checks of this process back; their commands go on."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # 2. Waiting

    async def look_at(self, goal: str) -> None:
        """Make the criteria of a waiting goal due now."""

        def become(goal: Goal) -> Goal | None:
            if goal.state is not State.WAITING:
                return None
            return replace(goal, state=State.CHECKING, round=goal.round + 1, wait_until=None, wait_exec="", why="")

        async def change(tx: Transaction) -> None:
            after = await self._goals.become(tx, goal, become)
            if after is not None:
                await self._rounds.queue(tx, after, self._queue, "", last)

        found = await self._goals.get(goal)
        last = await self._store.history.last_number(found.session) if found is not None else 0
        await self._store.write(change)

    async def _wait(self, goal: Goal) -> None:
        running = await self._around.checker.place.attach(goal.wait_exec)
        if running is not None:
            await running.wait()
        await self.look_at(goal.id)

    # 3. A check

    async def _work(self, claimed: Round) -> None:
        # Boundary: one job.
        try:
            await self._check(claimed)
        except asyncio.CancelledError:
            await asyncio.shield(spawn(self._put_back(claimed), name=f"release {claimed.lease.id}"))
            raise
        except LostLease as error:
            log.warning("%s", error)
        except Exception:
            log.exception("the check %s failed", claimed.lease.id)
            await self._put_back(claimed, counts=True)

    async def _put_back(self, claimed: Round, *, counts: bool = False) -> None:
        await self._rounds.release(claimed, "the check failed" if counts else "", counts=counts)
        await self._store.write(_ring)

    async def _check(self, claimed: Round) -> None:
        goal, record = await self._goals.get(claimed.goal), await self._store.sessions.get(claimed.session)
        if goal is None or record is None or not _is_current(goal, claimed):
            await self._store.write(partial(self._end_stale, claimed))
            return
        if claimed.attempts > MOST_ATTEMPTS:
            given_up = blocked(goal, "The program died in its check again and again.")
            await self._commit(claimed, goal, record, [], Decision(goal=given_up, news=given_up.untold))
            return
        name = claimed.lease.id.replace(":", "-")
        entries = await self._store.history.entries(claimed.session, goal.since)
        run = [each for each in entries if each.number > claimed.after]
        checks = await self._around.checker.facts(goal, name)
        spent = await self._is_spent(goal)
        if not spent and all(each.verdict == "met" for each in checks):
            try:
                checks += await self._around.checker.words(goal, record, entries)
            except LimitReached:
                spent = True
        found = await self._found(goal, name, checks, run, spent=spent)
        decision = decide(goal, checks, found, self._around.settings)
        decision = reported(goal, decision, goal.said, found.now)
        await self._rounds.check(claimed)
        await self._commit(claimed, goal, record, checks, decision)

    async def _end_stale(self, claimed: Round, tx: Transaction) -> None:
        if await self._rounds.end(tx, claimed, "stale"):
            await self._check_again(tx, claimed)

    async def _check_again(self, tx: Transaction, claimed: Round) -> None:
        """Queue the check of a goal that got another revision during this one."""
        goal = await self._goals.become(
            tx, claimed.goal, lambda there: there if there.state is State.CHECKING else None
        )
        if goal is not None:
            await self._rounds.queue(tx, goal, self._queue, claimed.run, claimed.after)

    async def _found(
        self, goal: Goal, name: str, checks: Sequence[Check], run: Sequence[Entry], *, spent: bool
    ) -> Found:
        is_met = len(checks) == len(goal.criteria) and all(each.verdict == "met" for each in checks)
        return Found(
            now=self._clock.now(),
            folder="" if is_met else await self._around.checker.folder(goal, name),
            effects=effects_of(run),
            spoke=person_spoke(run),
            unapproved=unapproved_in(run),
            spent=spent,
        )

    async def _is_spent(self, goal: Goal) -> bool:
        if not goal.limits:
            return False
        spent = await self._store.usage.spent(Scope.JOB, (goal.job,))
        money = goal.money is not None and spent.money >= goal.money
        return money or (goal.tokens is not None and spent.tokens >= goal.tokens)

    async def _commit(
        self, claimed: Round, goal: Goal, record: SessionRecord, checks: Sequence[Check], decision: Decision
    ) -> None:
        """Receipts, the goal, and what continues it, in one change; nothing of a goal that was changed meanwhile."""

        async def change(tx: Transaction) -> Goal | None:
            if not await self._rounds.end(tx, claimed, decision.goal.state):
                return None
            pending, queue = await self._rounds.lane(tx, claimed.session)
            after = await self._goals.become(tx, goal.id, lambda there: _after(there, claimed, decision, pending))
            if after is None:
                await self._check_again(tx, claimed)
                return None
            tx.rings.add("")
            await self._goals.keep(tx, goal, claimed.lease.id, claimed.run, checks)
            if decision.continues and not pending:
                who = self._around.principal(record.principal)
                inbound = _next_message(claimed.lease.id, record, after, checks, who, self._clock.now())
                await self._store.inbox.accept(inbound, record.id, queue or self._queue, tx=tx)
            return after

        after = await self._store.write(change)
        if after is None:
            return
        if decision.continues:
            self._around.hermes.scheduler.bus.start_run(record.id)
            self._around.hermes.scheduler.enqueue(record.id)
        await self._around.show(after)

    # 4. News

    async def _tell(self, goal: Goal) -> None:
        """Tell the person what became of the goal: by the outbox once, elsewhere as a notice in the session."""
        record = await self._store.sessions.get(goal.session) if goal.session else None
        if record is not None and not self._around.by_outbox(record.surface):
            await self._around.hermes.notify(record, Notice(text=goal.untold, level="news"))

        async def change(tx: Transaction) -> Goal | None:
            told = await self._goals.become(tx, goal.id, lambda there: _told(there, goal.untold))
            if told is not None and record is not None and self._around.by_outbox(record.surface):
                letter = Letter(
                    key=f"{SOURCE}:{goal.id}:{goal.revision}:{goal.round}:{goal.state}",
                    to=Conversation.parse(record.conversation),
                    content=Content(text=goal.untold),
                    session=record.id,
                )
                await self._store.outbox.put(tx, letter)
            return told

        told = await self._store.write(change)
        await self._around.show(goal if told is None else told)


def _after(there: Goal, claimed: Round, decision: Decision, pending: int) -> Goal | None:
    if not _is_current(there, claimed):
        return None
    if pending and decision.continues:  # A person goes first: the end of that run brings the next check.
        return replace(there, state=State.ACTIVE)
    return replace(decision.goal, untold=decision.news)


def _next_message(
    identity: str, record: SessionRecord, goal: Goal, checks: Sequence[Check], who: Principal, now: float
) -> Inbound:
    words, outputs = continuation(goal, checks)
    parts = [Text(text=words, origin=Origin.RUNTIME)]
    parts += [Text(text=f"\n\n{outputs}", origin=Origin.TOOL)] if outputs else []
    return Inbound(
        source=SOURCE,
        source_id=identity,
        principal=who,
        conversation=Conversation.parse(record.conversation),
        parts=tuple(parts),
        received=now,
        busy=Busy.QUEUE,
    )


def _is_current(goal: Goal, claimed: Round) -> bool:
    """Whether the check is still of this goal: neither a revision nor a later run came after it."""
    return (goal.state, goal.revision, goal.round) == (State.CHECKING, claimed.revision, claimed.round)


def _told(there: Goal, news: str) -> Goal | None:
    return replace(there, untold="") if there.untold == news else None


async def _ring(tx: Transaction) -> None:
    tx.rings.add("")
