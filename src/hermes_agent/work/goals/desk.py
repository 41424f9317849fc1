"""What a person does with goals: set, add a criterion, pause, resume, wait, end, and check now."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import partial

from hermes_agent.core.chat import Busy, Conversation, Inbound, Principal
from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Origin, Text
from hermes_agent.host.nearest import nearest_key
from hermes_agent.runs.front import Hermes
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.work.goals import PURSUED_STATES, Check, Criterion, Goal, Kind, State
from hermes_agent.tools.starting import exec_name, short_id
from hermes_agent.work.goals.checks import Checker
from hermes_agent.work.goals.rules import MOST_ACTIVE, SOURCE, first_words, message_id, nanodollars, problem_of
from hermes_agent.work.goals.settings import GoalSettings

SPAN = re.compile(r"(\d+)\s*(s|m|h|d)")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
FILE = re.compile(r"(?s)(?P<path>.+?)(?:\s+contains\s+(?P<contains>.+)|\s+sha256\s+(?P<sha256>[0-9a-fA-F]{64}))?")

BY_HAND = {State.PAUSED: "You paused it.", State.DONE: "Ended by hand.", State.DROPPED: "You cleared it."}
"""What a person may make of a goal, and why it is so then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A goal as a person asks for it. None of `turns`, `money` (US dollars) and `tokens`: the settings'. `anyway`
    begins it although its criteria hold; with `later` it is only written down."""

    text: str
    criteria: tuple[Criterion, ...] = ()
    constraints: tuple[str, ...] = ()
    turns: int | None = None
    money: float | None = None
    tokens: int | None = None
    origin: str = "person"
    anyway: bool = False
    later: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """Whose goals: `key` names the person in the store (`owner` or a principal), `principal` who asks."""

    key: str
    principal: str
    sees_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A goal with the receipts of a check; `met`: whether all its criteria hold."""

    goal: Goal
    checks: tuple[Check, ...] = ()
    met: bool = False


def criterion_of(kind: str, text: str) -> Criterion:
    """A criterion as people write it; a file is `PATH`, `PATH contains TEXT` or `PATH sha256 HEX`."""
    if kind != Kind.FILE:
        return Criterion(kind=Kind(kind), text=text.strip())
    found = FILE.fullmatch(text.strip())
    if found is None:
        raise HermesError("Say which file: `PATH`, `PATH contains TEXT` or `PATH sha256 HEX`.")
    return Criterion(
        kind=Kind.FILE,
        text=found["path"].strip(),
        contains=(found["contains"] or "").strip(),
        sha256=found["sha256"] or "",
    )


def moment_of(text: str, now: float) -> float:
    """The time that `10m`, `2h`, `15:30` or `2026-12-24 08:00` means, in seconds since 1970. Raises `HermesError`."""
    words = text.strip()
    if found := SPAN.fullmatch(words):
        return now + int(found[1]) * UNITS[found[2]]
    here = datetime.fromtimestamp(now).astimezone()
    try:
        if re.fullmatch(r"\d{1,2}:\d\d", words):
            hour, minute = map(int, words.split(":"))
            then = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
            return (then if then > here else then + timedelta(days=1)).timestamp()
        then = datetime.fromisoformat(words)
        return (then if then.tzinfo else then.astimezone()).timestamp()
    except (ValueError, OverflowError):
        raise HermesError(f"`{text}` is no time. Say `10m`, `2h`, `15:30` or `2026-12-24 08:00`.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Changes of goals by their person. `refused` says why a command may never run (empty: it may), `show` writes a
    goal's file. Whatever begins work puts its message into the session's inbox in the same commit. Every method raises
    `HermesError` with a sentence for what cannot be."""

    store: Store
    hermes: Hermes
    clock: Clock
    settings: GoalSettings
    checker: Checker
    who: Callable[[str], Principal]
    refused: Callable[[str, str, str], Awaitable[str]]
    show: Callable[[Goal], Awaitable[None]]
    ids: RandomIds = field(default_factory=RandomIds)

    async def find(self, who: Whose, name: str = "", session: str = "") -> Goal:
        """The goal of that id; without one, what the session pursues, else the one changed last, open ones first."""
        goals = await self.store.goals.list("" if who.sees_all else who.key, ended=True, limit=200)
        if not name:
            mine = [goal for goal in goals if goal.principal == who.key]
            here = [goal for goal in mine if goal.is_open and session and goal.session == session]
            if not mine:
                raise HermesError("There is no goal. `/goal TEXT` sets one.")
            return next(iter([goal for goal in here if goal.state in PURSUED_STATES] or here or mine))
        found = await self.store.goals.get(name)
        if found is None or not (who.sees_all or found.principal == who.key):
            near = nearest_key(name, [goal.id for goal in goals])
            raise HermesError(
                f"There is no goal {name}." + (f" Did you mean {near}?" if near else " See `/goal list`.")
            )
        return found

    async def create(self, who: Whose, wish: Wish, record: SessionRecord | None, folder: str) -> Checked:
        """Set a goal, which the session pursues. Its commands are run once before, for some seconds: where all criteria
        hold already, it is not begun unless `anyway`."""
        goal = await self._worded(who, wish, folder)
        record = None if wish.later else record
        if record is not None:
            await self._check_free(record, goal)
        checks = await self.checker.facts(goal, f"{goal.id}-{goal.revision}-0", brief=True)
        met = len(checks) == len(goal.criteria) and all(each.verdict == "met" for each in checks)
        if met and not wish.anyway:
            raise HermesError(
                f"Already true: {', '.join(map(str, goal.criteria))}. The goal was not begun; `--anyway` begins it."
            )
        if record is None:
            goal = replace(goal, state=State.DRAFT)
            await self.store.write(lambda tx: self.store.goals.put(tx, goal))
        else:
            goal = await self._placed(replace(goal, turns=1), record)
            await self._begin(goal, record, first_words(goal), None)
        await self.show(goal)
        return Checked(goal=goal, checks=tuple(checks), met=met)

    async def _begin(
        self, goal: Goal, record: SessionRecord, words: str, become: Callable[[Goal], Goal] | None
    ) -> Goal:
        """Write a goal (new, or as it becomes) with the message that has the session begin."""

        async def change(tx: Transaction) -> Goal | None:
            _, queue = await self.store.goal_rounds.lane(tx, record.id)
            if become is None:
                await self.store.goals.put(tx, goal)
                after: Goal | None = goal
            else:
                after = await self.store.goals.become(tx, goal.id, lambda now: become(now) if now.is_open else None)
            if after is not None:
                inbound = begins(after, record, self.who(record.principal), words, self.clock.now())
                await self.store.inbox.accept(inbound, record.id, queue or self.hermes.scheduler.queue, tx=tx)
            return after

        self.hermes.scheduler.bus.start_run(record.id)
        found = await self.store.write(change)
        if found is None:
            raise HermesError(f"Goal {goal.id} is {goal.state}.")
        self.hermes.scheduler.enqueue(record.id)
        return found

    async def _worded(self, who: Whose, wish: Wish, folder: str) -> Goal:
        criteria = wish.criteria
        turns = self.settings.max_turns if wish.turns is None else wish.turns
        if problem := problem_of(wish.text, criteria, turns, wish.constraints):
            raise HermesError(problem)
        if not criteria:
            criteria = (Criterion(kind=Kind.JUDGE, text=wish.text.strip()),)
        await self._check_criteria(who, criteria, folder)
        money = self.settings.money if wish.money is None else wish.money
        if wish.tokens is not None and wish.tokens < 0:
            raise HermesError("Tokens cannot be negative.")
        return Goal(
            id=f"g_{self.ids.short()[:6]}",
            principal=who.key,
            text=wish.text.strip(),
            created=self.clock.now(),
            origin=wish.origin,
            criteria=criteria,
            constraints=wish.constraints,
            folder=folder,
            max_turns=turns,
            money=None if money is None else nanodollars(money),
            tokens=self.settings.tokens if wish.tokens is None else wish.tokens,
        )

    async def _check_criteria(self, who: Whose, criteria: Sequence[Criterion], folder: str) -> None:
        for each in criteria:
            if each.kind is Kind.JUDGE and self.checker.judge is None:
                raise HermesError("No model judges goals here (`goals.judge: never`). Give a command or a file.")
            if each.kind is Kind.BOARD and not (self.checker.card and await self.checker.card(who.key, each.text)):
                raise HermesError(f"There is no card {each.text} of yours: `hermes kanban list` shows them.")
            if each.kind is Kind.COMMAND and (why := await self.refused(each.text, folder, who.principal)):
                raise HermesError(f"`{each.text}` cannot be a criterion. {why}")

    async def _check_free(self, record: SessionRecord, goal: Goal) -> None:
        """Raise `HermesError` where the session, or its person, has no room for this goal."""
        begun = [each for each in await self.store.goals.list(goal.principal) if each.state is not State.DRAFT]
        if len(begun) >= MOST_ACTIVE and goal.id not in {each.id for each in begun}:
            raise HermesError(f"You have {len(begun)} open goals, which is the most. End one first: `/goal clear ID`.")
        if record.job:
            raise HermesError(f"This session belongs to the job {record.job}. Set the goal in another session.")
        there = await self.store.goals.pursued(record.id)
        if there is not None and there.id != goal.id:
            raise HermesError(f"Goal {there.id} is pursued here. Pause or clear it first, or use another session.")

    async def _placed(self, goal: Goal, record: SessionRecord) -> Goal:
        since = goal.since if record.id == goal.session else await self.store.history.last_number(record.id)
        return replace(goal, session=record.id, folder=goal.folder or record.workspace, since=since)

    async def add(self, who: Whose, goal: Goal, *criteria: Criterion, instead: bool = False) -> Goal:
        """Add criteria, or put them `instead` of those that are there: a new revision."""
        if problem := problem_of(goal.text, (*goal.criteria, *criteria), 1, goal.constraints):
            raise HermesError(problem)
        await self._check_criteria(who, criteria, goal.folder)
        return await self._become(
            goal,
            lambda now: replace(
                now, criteria=(*(() if instead else now.criteria), *criteria), revision=now.revision + 1
            ),
        )

    async def resume(
        self, goal: Goal, record: SessionRecord, turns: int | None = None, money: float | None = None
    ) -> Goal:
        """Have this session pursue the goal, with `turns` more and `money` (US dollars) in all."""
        if not goal.is_open:
            raise HermesError(f"Goal {goal.id} is {goal.state}.")
        if turns is not None and (problem := problem_of(goal.text, (), turns)):
            raise HermesError(problem)
        budget = None if money is None else nanodollars(money)
        await self._check_free(record, goal)
        as_it_is = turns is money is None and goal.state is State.ACTIVE and goal.session == record.id
        if as_it_is and await self.hermes.resume(record.id):
            return goal  # Its run was interrupted, and needs no other message.
        if goal.turns >= goal.max_turns and turns is None:
            raise HermesError(
                f"Its {goal.max_turns} turns are used up: `/goal resume {goal.id} turns N` gives it more."
            )
        placed = await self._placed(goal, record)
        if goal.session != record.id:
            await self._take_back(goal)
        words = f"Continue with the goal {goal.id}: {goal.text}" if goal.round else first_words(goal)
        after = await self._begin(goal, record, words, partial(_resumed, placed, turns, budget))
        await self.show(after)
        return after

    async def stop(self, goal: Goal, state: State) -> Goal:
        """Pause it until it is resumed, or end it by hand: done, or dropped."""
        end = None if state is State.PAUSED else self.clock.now()
        return await self._take_back(
            await self._become(goal, lambda now: replace(now, state=state, why=BY_HAND[state], ended=end))
        )

    async def _take_back(self, goal: Goal) -> Goal:
        """Take back the message that would continue the goal, where no run has read it."""
        record = await self.store.sessions.get(goal.session) if goal.session else None
        for name in (message_id(goal), f"{message_id(goal)}:begin"):
            mail = await self.store.inbox.find(SOURCE, name)
            if record is not None and mail is not None and mail.state == "new":
                unread = begins(goal, record, self.who(record.principal), "", self.clock.now())
                await self.hermes.withdraw(replace(unread, source_id=f"{name}:back", parts=(), withdraws=name))
        return goal

    async def wait(self, goal: Goal, until: float | None = None, exec_id: str = "") -> Goal:
        """Ask no model until that time, or the end of that command."""
        if goal.state not in PURSUED_STATES:
            raise HermesError(f"Goal {goal.id} is {goal.state}, and does nothing that could wait.")
        if exec_id:
            there = await self.checker.place.list(exec_name(goal.session))
            found = [each for each in there if exec_id in (each, short_id(each))]
            if not found:
                raise HermesError(
                    f"There is no background command {exec_id} in the session of {goal.id}. `/goal until TIME` waits "
                    "for a time."
                )
            exec_id = found[0]
        why = f"It waits for {exec_id}." if exec_id else "It waits until a time."
        return await self._become(
            goal,
            lambda now: replace(
                now, state=State.WAITING, why=why, wait_until=until, wait_exec=exec_id, round=now.round + 1
            ),
        )

    async def unwait(self, goal: Goal) -> Goal:
        """Look at it now."""
        if goal.state is not State.WAITING:
            raise HermesError(f"Goal {goal.id} does not wait.")
        return await self._become(goal, lambda now: replace(now, wait_until=self.clock.now(), wait_exec=""))

    async def report(self, goal: Goal, word: str, why: str) -> Goal:
        """Note what the agent says of it; the criteria decide."""
        return await self._become(goal, lambda now: replace(now, said=(word, why)))

    async def check(self, goal: Goal) -> Checked:
        """Check the criteria now, and keep the receipts. A goal that holds is done."""
        name = f"{goal.id}:check:{self.ids.short()}"
        checks = await self.checker.facts(goal, name.replace(":", "-"))
        record = await self.store.sessions.get(goal.session) if goal.session else None
        if all(each.verdict == "met" for each in checks):
            entries = await self.store.history.entries(goal.session, goal.since)
            checks += await self.checker.words(goal, record, entries)
        met = len(checks) == len(goal.criteria) and all(each.verdict == "met" for each in checks)

        def become(now: Goal) -> Goal | None:
            if not met or not now.is_open or now.revision != goal.revision:
                return None
            return replace(now, state=State.DONE, why="", unmet=(), ended=self.clock.now())

        async def change(tx: Transaction) -> Goal | None:
            await self.store.goals.keep(tx, goal, name, "", checks)
            return await self.store.goals.become(tx, goal.id, become)

        after = await self.store.write(change)
        after = goal if after is None else await self._take_back(after)
        await self.show(after)
        return Checked(goal=after, checks=tuple(checks), met=met)

    async def _become(self, goal: Goal, become: Callable[[Goal], Goal]) -> Goal:
        """Change an open goal; what rings has every process look again."""

        async def change(tx: Transaction) -> Goal | None:
            tx.rings.add("")
            return await self.store.goals.become(tx, goal.id, lambda now: become(now) if now.is_open else None)

        after = await self.store.write(change)
        if after is None:
            raise HermesError(f"Goal {goal.id} is {goal.state}.")
        await self.show(after)
        return after


def begins(goal: Goal, record: SessionRecord, who: Principal, words: str, now: float) -> Inbound:
    """The message that has a session begin, or go on, with a goal: the person's words."""
    parts = [Text(text=words, origin=Origin(who.standing.value))]
    return message(f"{message_id(goal)}:begin", record, who, parts, now)


def message(identity: str, record: SessionRecord, who: Principal, parts: Sequence[Text], now: float) -> Inbound:
    """A message about a goal to the session that pursues it, which gets a run of its own."""
    return Inbound(
        source=SOURCE,
        source_id=identity,
        principal=who,
        conversation=Conversation.parse(record.conversation),
        parts=tuple(parts),
        received=now,
        busy=Busy.QUEUE,
    )


def _resumed(placed: Goal, turns: int | None, money: int | None, now: Goal) -> Goal:
    """A goal that another session, or the same one again, pursues, without what earlier rounds counted."""
    return replace(
        now,
        why="",
        fails=0,
        same=0,
        drift=0,
        garbled=0,
        unreached=0,
        mark="",
        said=("", ""),
        untold="",
        wait_until=None,
        wait_exec="",
        state=State.ACTIVE,
        session=placed.session,
        folder=placed.folder,
        since=placed.since,
        round=now.round + 1,
        turns=now.turns + 1,
        max_turns=now.max_turns if turns is None else now.turns + turns,
        money=now.money if money is None else money,
    )
