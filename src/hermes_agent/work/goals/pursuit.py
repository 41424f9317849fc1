"""Pursues goals: claims the check that is due, and goes on or stops by what it gives; and the tool `goal`."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Literal

from hermes_agent.agent.mailbox import Change
from hermes_agent.agent.session import Session
from hermes_agent.agent.stop import NEW_MESSAGE, WITHDRAWN
from hermes_agent.core.chat import Conversation, Standing
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import HermesError, LimitReached, LostLease, ToolError
from hermes_agent.core.events import Entry, RunEnded
from hermes_agent.core.mandate import Work
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.spending import Scope
from hermes_agent.core.tool import CallContext, Question, tool
from hermes_agent.host.tasks import cancelled, spawn
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.work.goals import MOST_ATTEMPTS, Check, Criterion, Goal, Kind, Round, State
from hermes_agent.work.goals.checks import effects_of, person_spoke, unapproved_in
from hermes_agent.work.goals.desk import Desk, Whose, Wish, message
from hermes_agent.work.goals.rules import (
    FOR_CARDS,
    Decision,
    Found,
    after_run,
    blocked,
    continuation,
    decide,
    page,
    reported,
)
from hermes_agent.work.goals.settings import GoalSettings

PEER_SECONDS = 5.0
"""Seconds between two looks at a check that another process holds, and after a failure."""
MOST_AT_ONCE = 8
"""Checks and waits of one process at a time."""
log = logging.getLogger(__name__)


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
    news. A check that was begun goes on after a crash under the same exec ids.

    `tell` tells the news of a goal. `sessions`: whose goals this process pursues (None: all of its queue).
    """

    def __init__(
        self, desk: Desk, tell: Callable[[Goal], Awaitable[None]], sessions: Collection[str] | None = None
    ) -> None:
        self._desk, self._tell, self._of = desk, tell, sessions
        self._store, self._hermes, self._clock, self._checker = desk.store, desk.hermes, desk.clock, desk.checker
        self._goals, self._rounds = self._store.goals, self._store.goal_rounds
        self._queue = desk.hermes.scheduler.queue
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.ring: Callable[[], None] = lambda: None
        """Asks the alarm to look again."""

    # 1. What is due

    async def next_due(self) -> float | None:
        """See `runs.alarm.Source`."""
        if len(self._tasks) < MOST_AT_ONCE and await self._rounds.ready(self._queue, self._of):
            return 0.0
        times = [await self._due_at(goal) for goal in await self._mine()]
        if await self._rounds.peers_check(self._queue):
            times.append(self._clock.now() + PEER_SECONDS)
        return min((each for each in times if each is not None), default=None)

    async def _due_at(self, goal: Goal) -> float | None:
        if goal.id in self._tasks:
            return None
        is_due = goal.untold or goal.wait_exec or (goal.why == FOR_CARDS and await self._has_cards(goal))
        return 0.0 if is_due else goal.wait_until

    async def _has_cards(self, goal: Goal) -> bool:
        cards = [each for each in goal.criteria if each.kind is Kind.BOARD]
        with suppress(HermesError):  # A board out of reach is looked at with the next check.
            return all([(await self._checker.of_card(goal, each)).verdict == "met" for each in cards])
        return False

    async def _mine(self) -> list[Goal]:
        """The goals with something due that this process looks after."""
        found = await self._goals.due("" if self._of is not None else self._queue)
        return [goal for goal in found if self._of is None or goal.session in self._of]

    async def fire(self) -> None:
        """See `runs.alarm.Source`."""
        now = self._clock.now()
        for goal in await self._mine():
            due = await self._due_at(goal)
            if due is None or due > now:
                continue
            act = self._tell(goal) if goal.untold else self._wait(goal) if goal.wait_exec else self.look_at(goal.id)
            self._spawn(goal.id, act)
        while len(self._tasks) < MOST_AT_ONCE:
            if (claimed := await self._rounds.claim(self._queue, self._of)) is None:
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
        await cancelled(list(self._tasks.values()))

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
        running = await self._checker.place.attach(goal.wait_exec)
        if running is not None:
            await running.wait()
        await self.look_at(goal.id)

    # 3. A check

    async def _work(self, claimed: Round) -> None:
        # Boundary: one job.
        try:
            await self._check(claimed)
        except asyncio.CancelledError:
            await asyncio.shield(spawn(self._rounds.claims.release(claimed.lease), name=f"release {claimed.lease.id}"))
            raise
        except LostLease as error:
            log.warning("%s", error)
        except Exception:
            log.exception("the check %s failed", claimed.lease.id)
            await self._rounds.claims.release(claimed.lease, "the check failed", counts=True)

    async def _check(self, claimed: Round) -> None:
        goal, record = await self._goals.get(claimed.goal), await self._store.sessions.get(claimed.session)
        if goal is None or record is None or not _is_current(goal, claimed):
            await self._store.write(partial(self._check_again, claimed=claimed, ends=True))
            return
        is_guest = self._desk.who(record.principal).standing is Standing.GUEST
        if is_guest or claimed.attempts > MOST_ATTEMPTS:
            crashed = "The program died in its check again and again."
            why = f"{record.principal} may not use this agent any more." if is_guest else crashed
            given_up = blocked(goal, why)
            await self._commit(claimed, goal, record, [], Decision(goal=given_up, news=given_up.untold))
            return
        name = claimed.lease.id.replace(":", "-")
        entries = await self._store.history.entries(claimed.session, goal.since)
        run = [each for each in entries if each.number > claimed.after]
        checks = await self._checker.facts(goal, name)
        spent = await self._is_spent(goal)
        if not spent and all(each.verdict == "met" for each in checks):
            try:
                checks += await self._checker.words(goal, record, entries)
            except LimitReached:
                spent = True
        found = await self._found(goal, name, checks, run, spent=spent)
        decision = decide(goal, checks, found, self._desk.settings)
        decision = reported(goal, decision, goal.said, found.now)
        await self._rounds.claims.check(claimed.lease)
        await self._commit(claimed, goal, record, checks, decision)

    async def _check_again(self, tx: Transaction, claimed: Round, *, ends: bool = False) -> None:
        """Queue the check of a goal that got another revision during this one, which `ends` here or has ended."""
        if ends and not await self._rounds.end(tx, claimed, "stale"):
            return
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
            folder="" if is_met else await self._checker.folder(goal, name),
            effects=effects_of(run),
            spoke=person_spoke(run),
            unapproved=unapproved_in(run),
            spent=spent,
        )

    async def _is_spent(self, goal: Goal) -> bool:
        spent = await self._store.usage.spent(Scope.JOB, (goal.job,))
        used = ((goal.money, spent.money), (goal.tokens, spent.tokens))
        return any(limit is not None and amount >= limit for limit, amount in used)

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
                words, outputs = continuation(after, checks)
                parts = [Text(text=words, origin=Origin.RUNTIME)]
                parts += [Text(text=f"\n\n{outputs}", origin=Origin.TOOL)] if outputs else []
                inbound = message(claimed.lease.id, record, self._desk.who(record.principal), parts, self._clock.now())
                await self._store.inbox.accept(inbound, record.id, queue or self._queue, tx=tx)
            return after

        after = await self._store.write(change)
        if after is None:
            return
        if decision.continues:
            self._hermes.scheduler.bus.start_run(record.id)
            self._hermes.scheduler.enqueue(record.id)
        await self._desk.show(after)


def _after(there: Goal, claimed: Round, decision: Decision, pending: int) -> Goal | None:
    if not _is_current(there, claimed):
        return None
    if pending and decision.continues:  # A person goes first: the end of that run brings the next check.
        return replace(there, state=State.ACTIVE)
    return replace(decision.goal, untold=decision.news)


def _is_current(goal: Goal, claimed: Round) -> bool:
    """Whether the check is still of this goal: neither a revision nor a later run came after it."""
    return (goal.state, goal.revision, goal.round) == (State.CHECKING, claimed.revision, claimed.round)


YES, NO = "yes", "no"


class GoalTools:
    """The toolset `goals`: its one tool `goal`. `whose` says whose goals a principal has."""

    def __init__(self, desk: Callable[[], Desk], whose: Callable[[str], Whose]) -> None:
        self._desk, self._whose = desk, whose

    @tool(effect=Effect.KEYED, reads_when="action=get", origin=Origin.RUNTIME)
    async def goal(
        self,
        action: Literal["get", "propose", "report"],
        context: CallContext,
        text: str = "",
        commands: list[str] | None = None,
        state: Literal["done", "blocked", "waiting"] = "done",
    ) -> str:
        """The person's goals: get them; propose one to the person; report the state of yours. Criteria are checked
        after your reply.

        Args:
            text: the goal; in a report why
            commands: each must exit with 0
        """
        desk = self._desk()
        record = await desk.store.sessions.get(context.session)
        if record is None or not Conversation.parse(record.conversation).is_private:
            raise ToolError("Goals are a private matter: not in a chat that others read.")
        if action == "get":
            return await self._shown(desk, record)
        if record.surface in set(Work):
            raise ToolError("Here goals can only be read: a person sets and ends them.")
        if action == "propose":
            return await self._propose(desk, record, context, text, commands or [])
        goal = await desk.store.goals.pursued(record.id)
        if goal is None:
            raise ToolError("No goal is pursued in this conversation.")
        await desk.report(goal, state if state != "done" else "", text)
        return f"Noted. The criteria of {goal.id} are checked when this reply ends; they decide."

    async def _shown(self, desk: Desk, record: SessionRecord) -> str:
        goals = await desk.store.goals.list(self._whose(record.principal).key)
        pages = [page(replace(goal, why=""), await desk.store.goals.receipts(goal.id, 5)) for goal in goals]
        return "\n".join(pages) or "There are no open goals."

    async def _propose(
        self, desk: Desk, record: SessionRecord, context: CallContext, text: str, commands: list[str]
    ) -> str:
        criteria = tuple(Criterion(kind=Kind.COMMAND, text=each) for each in commands)
        proof = "\n".join(f"- {each}" for each in criteria) or "- a model judges that it is reached"
        there = await desk.store.goals.pursued(record.id)
        asks = f"Shall this be a goal that I pursue until it is reached?\n{text}"
        if there is not None:
            asks = f"Shall the goal {there.id} have further criteria?\n{there.text}"
            if not commands:
                raise ToolError(f"Goal {there.id} is pursued here: propose `commands` that prove it.")
        question = Question(
            text=f"{asks}\nIt counts as done when:\n{proof}",
            about=hashlib.sha256(repr((text, commands, record.workspace)).encode("utf-8", "replace")).hexdigest(),
            choices=(YES, NO),
        )
        answer = (await context.ask(question)).strip()
        if answer.lower() not in (YES, "y"):
            return f"The person did not agree: {answer}"
        who = self._whose(record.principal)
        if there is not None:
            await desk.add(who, there, *criteria)
            return f"The person agreed: {there.id} has these criteria too."
        wish = Wish(text=text, criteria=criteria, origin="proposed")
        made = await desk.create(who, wish, record, record.workspace)
        return f"The person agreed: {made.goal.id} begins after this reply."
