"""Joins goals to the system: what a run gets of them, who judges, what their commands may be, and their files."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from hermes_agent.agent.session import Session
from hermes_agent.app.auxiliary.asking import Small, asked
from hermes_agent.app.auxiliary.background_models import BackgroundModels
from hermes_agent.app.auxiliary.settings import Purpose
from hermes_agent.app.chats.people import People
from hermes_agent.app.chats.settings import GatewaySettings, homes_in
from hermes_agent.app.process import Options
from hermes_agent.app.work import GOALS, OWNER, WorkPart, whose
from hermes_agent.core.chat import Content, Conversation, Letter, Standings
from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import MessageTaken, Notice, RunEnded
from hermes_agent.core.messages import Origin, said
from hermes_agent.core.quick_replies import GOAL as QUESTION
from hermes_agent.core.section import short_hash
from hermes_agent.core.tool import CallFacts
from hermes_agent.host.late import Needs
from hermes_agent.host.paths import PRIVATE_FOLDER, Home, write_private
from hermes_agent.host.secrets import Secrets
from hermes_agent.memory.settings import label_of
from hermes_agent.replay.seam import Book, StoredLedger
from hermes_agent.runs.alarm import Alarm
from hermes_agent.runs.front import Hermes
from hermes_agent.sandbox.place import Place
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.work.goals import Goal, State
from hermes_agent.tools.permission.requests import Denied, Policy, Request
from hermes_agent.work.goals import rules
from hermes_agent.work.goals.checks import SYSTEM, CardState, Checker, proof_in
from hermes_agent.work.goals.desk import Desk, Whose
from hermes_agent.work.goals.pursuit import Closing, GoalTools, Pursuit
from hermes_agent.work.goals.settings import GoalSettings

FOLDER = "goals"
GLANCE = 0.5
"""Seconds until a question that could not be put into a busy session is tried again."""
CARDS = "hermes_agent.app.work.board:card_state"
"""What gives the state of a card (`work.goals.checks.CardState`): made of the needs when a criterion asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalTail:
    """Tail source of a person's open goals; `origin` is the label of their words."""

    store: Store
    principal: str
    origin: Origin
    name: str = "Goals"

    async def words(self, session: str, heard: str) -> str:  # noqa: ARG002  goals are shown whatever was said
        """A few lines for each open goal."""
        return rules.tail(await self.store.goals.list(self.principal), session)


class GoalWork:
    """The goals of a process: gives runs their part of them, and checks them when runs have ended. A process with a
    person in front of it has an alarm for the goals of its own sessions."""

    def __init__(self, needs: Needs) -> None:
        self._needs, self._store = needs, needs.get(Store)
        self._standings, self._settings = needs.get(Standings), needs.get(GoalSettings)
        self._options, self._hermes = needs.get(Options), needs.get(Hermes)
        self._own: set[str] = set()
        self.desk = Desk(
            store=self._store,
            hermes=self._hermes,
            clock=needs.get(Clock),
            settings=self._settings,
            checker=Checker(
                place=needs.get(Place),
                clock=needs.get(Clock),
                redact=needs.get(Secrets).redact,
                seconds=self._settings.command_seconds,
                judge=self._judge if self._settings.judge == "auto" else None,
                card=self._card,
            ),
            who=self._standings.principal,
            refused=self.refused,
            show=self._show,
        )
        self.pursuit = Pursuit(self.desk, self._tell, self._own if self._options.own_only else None)
        self._alarm: Alarm | None = None
        self._rung: set[str] = set()
        self._moved = asyncio.Event()

    async def _show(self, goal: Goal) -> None:
        """Write the file of a goal, for people to read."""
        if self._settings.mirror:
            text = rules.page(goal, await self._store.goals.receipts(goal.id))
            file = self._needs.get(Home).root / FOLDER / f"{goal.id}.md"
            await asyncio.to_thread(_write, file, text)
        self._moved.set()

    def _home(self, goal: Goal) -> Conversation | None:
        """The owner's home chat, for news of their goal that nobody may see in its session."""
        there = self._options.attended and self._options.own_only
        homes = [each for each in homes_in(self._needs.get(GatewaySettings).channels) if each.is_private]
        return None if there or goal.principal != OWNER else next(iter(homes), None)

    async def _tell(self, goal: Goal) -> None:
        """Tell the person what became of the goal, once: by the outbox, elsewhere as a notice in the session, and at
        home where they may not look into that."""
        record = await self._store.sessions.get(goal.session) if goal.session else None
        is_sent = record is not None and record.surface in self._needs.get(People).channels
        chats = [Conversation.parse(record.conversation)] if record is not None and is_sent else []
        chats += [home] if not is_sent and (home := self._home(goal)) else []

        def without_news(there: Goal) -> Goal | None:
            return replace(there, untold="") if there.untold == goal.untold else None

        async def change(tx: Transaction) -> None:
            if await self._store.goals.become(tx, goal.id, without_news) is None:
                return
            key = f"{rules.SOURCE}:{goal.id}:{goal.revision}:{goal.round}:{goal.state}"
            for to in chats:
                letter = Letter(key=key, to=to, content=Content(text=goal.untold), session=goal.session)
                await self._store.outbox.put(tx, letter)

        if record is None or is_sent:
            await self._store.write(change)
        else:
            async with self._hermes.holding(record.id, beside_run=True) as journal:
                # Whoever tells it holds the session.
                if (await self._store.goals.get(goal.id) or goal).untold == goal.untold:
                    self._hermes.scheduler.service.speaks(journal, record)
                    await journal.commit(Notice(text=goal.untold, level="news"), changes=[change])
        await self._show(await self._store.goals.get(goal.id) or goal)

    async def ask_for_proof(self, goal: Goal, record: SessionRecord) -> None:
        """Ask the owner, once the work has begun, whether the command that the folder names shall decide; until then a
        model judges."""
        command = await asyncio.to_thread(proof_in, goal.folder)
        if not command or goal.principal != OWNER or await self.refused(command, goal.folder, record.principal):
            return
        with suppress(HermesError):
            async with aclosing(self._hermes.watch(record.id, goal.since)) as events:
                await anext(seen async for seen in events if isinstance(seen.event, MessageTaken))
            text = f"Count {goal.id} as done when `{command}` exits with 0?"
            asked = Notice(text=text, level="news", question=f"{QUESTION}{goal.id}:{short_hash(command)}")
            while (now := await self._store.goals.get(goal.id)) is not None and now.is_open:
                with suppress(HermesError):  # Somebody holds the session for a moment, as between two runs.
                    await self._hermes.notify(record, asked)
                    return
                await asyncio.sleep(GLANCE)

    async def settled(self, goal: str) -> Goal:
        """Wait until a goal that this process pursues stands still (ended, stopped, waiting), and its news is told."""
        while True:
            self._moved.clear()
            found = await self._store.goals.get(goal)
            assert found is not None
            if found.state not in (State.ACTIVE, State.CHECKING) and not found.untold:
                return found
            await self._moved.wait()

    async def part(self, record: SessionRecord) -> WorkPart:
        """What a run of this session gets: the tail of the person's goals (none where others read along), and of the
        goal that it pursues the account, and what the run's end adds to its commit."""
        who = whose(self._standings, record.principal)
        is_private = Conversation.parse(record.conversation).is_private
        label = label_of(self._standings.of(record.principal), record.conversation)
        tails = (GoalTail(store=self._store, principal=who, origin=label),) if is_private else ()
        goal = await self._store.goals.pursued(record.id)
        if goal is None:
            return WorkPart(tails=tails, job=record.job)
        closing = Closing(self._store, self._settings, self._hermes.scheduler.queue, self._rung.add)
        return WorkPart(tails=tails, closings=(closing,), job=record.job or goal.job, limits=goal.limits)

    def afterwards(self, record: SessionRecord, _view: Session, _ended: RunEnded) -> None:
        """Run-end listener: check what is due."""
        if record.id in self._rung:
            self._rung.discard(record.id)
            self.watch(record.id)
            self._moved.set()

    def watch(self, session: str) -> None:
        """Look after the goal of a session from now on."""
        self._own.add(session)
        if self._alarm is None and self._options.own_only:
            self._alarm = Alarm(self._needs.get(Clock), lambda: (self.pursuit,))
            self.pursuit.ring = self._alarm.ring
            self._hermes.scheduler.subscribe(self._alarm.ring)
            self._hermes.scheduler.subscribe(self._moved.set)
            self._alarm.start()
        if self._alarm is not None:
            self._alarm.ring()

    async def close(self) -> None:
        """Check no more; what was begun goes on in the next process."""
        if self._alarm is not None:
            await self._alarm.close()
        await self.pursuit.close()

    async def _card(self, whose: str, card: str) -> str:
        state: CardState = self._needs.made(CARDS)
        return await state(whose, card)

    async def _judge(self, goal: Goal, record: SessionRecord, question: str) -> str:
        book = self._needs.get(Book).within(*goal.limits)
        ledger = StoredLedger(book, record.principal, goal.job)
        model = await self._needs.get(BackgroundModels).model(Purpose.JUDGE, record, ledger)
        small = Small(
            call_id=RandomIds().short(),
            purpose=Purpose.JUDGE,
            system=SYSTEM,
            message=said(question, Origin.TOOL),
            whose=(record.id, "", 0),
        )
        return await asked(model, small)

    async def refused(self, command: str, folder: str, principal: str) -> str:
        """Why a command may never run, by the hard block and the deny list; empty where it may."""
        facts = CallFacts(effect=Effect.EXEC, paths=None, summary=f"terminal: {command}")
        is_owner = self._standings.is_owner(principal)
        wall = await asyncio.to_thread(self._needs.get(Place).wall)
        request = Request(
            tool="terminal",
            needs=frozenset({Capability.EXEC}),
            facts=facts,
            arguments={"command": command},
            session=FOLDER,
            workspace=folder,
            confined=not is_owner,
            principal=principal,
            wall=wall,
        )
        decision = await asyncio.to_thread(self._needs.get(Policy).decide, request)
        return decision.reason if isinstance(decision, Denied) else ""


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    write_private(path, text.encode("utf-8", "replace"), durable=False)


def whose_goals(standings: Standings, principal: str) -> Whose:
    """Whose goals this principal has."""
    return Whose(key=whose(standings, principal), principal=principal)


def goal_tools(needs: Needs) -> GoalTools:
    """Factory of the toolset `goals`."""
    return GoalTools(lambda: needs.made(GOALS).desk, partial(whose_goals, needs.get(Standings)))


def goal_alarm(needs: Needs) -> Pursuit:
    """Factory of the alarm's source."""
    work: GoalWork = needs.made(GOALS)
    return work.pursuit
