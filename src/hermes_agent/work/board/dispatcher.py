"""The dispatcher: claims ready cards, starts a process for each, and records how it ended. A source of the alarm."""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, LostLease
from hermes_agent.host.tasks import cancelled, spawn
from hermes_agent.sandbox.place import AlreadyStarted, Command, Place, Running
from hermes_agent.store.work.card_runs import Caps
from hermes_agent.store.work.cards import COMMAND, PROFILE, Card, CardRun, Change, Ending, RunKind, Status, Workspace
from hermes_agent.work.board.board import Board, promote
from hermes_agent.work.board.rules import By, Order, Role, Verb, moved
from hermes_agent.work.board.workspaces import Kept, Workspaces

NAME = "dispatcher"
LOOK = 0.05
SECOND_LOOK = 5.0
"""What is missing is gone when it still is missing after so many seconds."""
LINGER = 30.0
"""So long may a process go on whose card has moved by its own word."""
AGAIN = 30.0
"""Cards that found no room are looked at again after so many seconds, if nothing is heard before."""
SPAWN_FAILURES, PAUSE = 3, 600.0
"""After so many failed starts in a row, no process of that profile is started for so many seconds."""
DIVIDED = 3
"""So many cards in triage are divided at a time."""
RATE_LIMITED = 75
"""The exit code of a worker whose model was asked too often."""
OUTPUT = 2000
DAY = 86_400
OWN_WORD = frozenset({Ending.COMPLETED, Ending.BLOCKED, Ending.PASSED, Ending.FAILED})
Key = tuple[str, int]
log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Watched:
    """A process in this dispatcher's care. `ending` is why it is being ended (None: it is not), `useless` since when
    its card needs it no more."""

    task: asyncio.Task[None]
    running: Running | None = None
    ending: Ending | None = None
    useless: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a dispatcher has of its machine: its name (empty where the database has one machine), the place where
    programs of this user run, the one where checks run behind the wall, workspaces, and the command line of
    `hermes`."""

    host: str
    programs: Place
    checks: Callable[[], Place]
    workspaces: Workspaces
    hermes: Sequence[str] = field(default_factory=lambda: (sys.executable, "-m", "hermes_agent"))

    def place(self, run: CardRun) -> Place:
        """Where the process of a run is."""
        return self.checks() if run.profile == COMMAND else self.programs

    def command(self, board: Board, card: Card, run: CardRun) -> Command:
        """The process of a claimed card: its check, or a `hermes` that works on it."""
        if run.profile == COMMAND:
            text, seconds = card.validator.removeprefix(COMMAND), board.settings.check_seconds
            return Command(text=text, folder=card.folder, limit=seconds)
        profile = ("-p", run.profile) if run.profile else ()
        argv = (*self.hermes, *profile, "worker", "--card", card.id, "--epoch", str(run.epoch))
        named = {
            "HERMES_HOME": str(board.home.base),
            "HERMES_KANBAN_TASK": card.id,
            "HERMES_KANBAN_WORKSPACE": card.folder,
        }
        variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in named.items())
        return Command(text=f"{variables} {shlex.join(argv)}", folder=card.folder)


class Dispatcher:
    """Keeps the cards of a home going on one machine, for people who `may` use the agent. Any number of them may work
    side by side: cards are claimed, and the end of a process counts once."""

    def __init__(
        self, board: Board, clock: Clock, machine: Machine, may: Callable[[str], bool] = lambda _person: True
    ) -> None:
        self._board, self._clock, self._machine, self._may = board, clock, machine, may
        self._by = By(name=NAME, role=Role.BOARD, owner=board.store.workers.id)
        self._watched: dict[Key, Watched] = {}
        self._missing: dict[Key, float] = {}
        self._seen: frozenset[tuple[str, int, int]] = frozenset()
        self._stuck: frozenset[tuple[str, int]] = frozenset()
        self._looked = 0.0

    async def next_due(self) -> float | None:
        """When there is something to do; at once where cards wait or open processes changed, and soon while there are
        some: what is missing, or over its time, is seen at a look."""
        settings = self._board.settings
        waiting, opened = await self._waiting(), _marks(await self._board.runs.open())
        if waiting - self._stuck or opened != self._seen:
            return self._clock.now()
        stale, keep = 60 * settings.stale_minutes, DAY * settings.keep_days
        due = await self._board.runs.next_due(self._machine.host, stale, keep)
        again = self._looked + (SECOND_LOOK if opened else AGAIN) if opened or waiting else None
        return min((each for each in (due, again) if each is not None), default=None)

    async def fire(self) -> None:
        """Do what is due: look after open processes, unblock, claim and start, say what stands still, clean up."""
        now, alive, opened = self._clock.now(), await self._board.runs.alive(), await self._board.runs.open()
        self._looked, self._seen = now, _marks(opened)
        self._missing = {key: at for key, at in self._missing.items() if key in {_key(run) for run, _ in opened}}
        for run, card in opened:
            await self._tend(run, card, alive, now)
        for blocked in await self._board.runs.overdue(now):
            with suppress(HermesError):  # Somebody moved it.
                await self._board.move(self._by, blocked, Order(verb=Verb.UNBLOCK))
        if await self._waiting():  # First: what is ready again has its end among those that the caps count.
            caps, decide = await self._caps(now), partial(_claimed, self._by, now)
            for card, run in await self._board.runs.claim(self._machine.host, caps, decide):
                self._watch(run, self._start(card, run))
        await self._notice(opened, now)
        await self._clean(now)
        self._stuck = await self._waiting()

    @property
    def at_work(self) -> int:
        """How many processes are open."""
        return len(self._seen)

    @property
    def starts(self) -> bool:
        """Whether a process is being started, or is missing and may be gone."""
        return bool(self._missing) or any(
            each.running is None and not each.task.done() for each in self._watched.values()
        )

    async def close(self) -> None:
        """Watch no process any more; they go on."""
        await cancelled([each.task for each in self._watched.values()])

    async def _waiting(self) -> frozenset[tuple[str, int]]:
        return await self._board.runs.waiting(self._machine.host, triage=self._board.settings.auto_decompose)

    # Open processes

    async def _tend(self, run: CardRun, card: Card, alive: Mapping[str, str], now: float) -> None:
        """Do what an open process needs now."""
        found = self._watched.get(_key(run))
        if run.host != self._machine.host:
            gone = card.owner not in alive if _holds(run, card) else run.host not in alive.values()
            if self._is_gone(run, gone, now):
                await self._over(run, None, Ending.RECLAIMED, "")
        elif found is None:
            await self._attach(run, card, alive, now)
        elif found.running is not None and found.ending is None:
            if _holds(run, card) and not self._may(card.person):
                await self._dismiss(card)
            elif ending := self._useless(found, run, card, alive, now):
                found.ending = ending  # Whoever follows it records the end.
                spawn(found.running.kill(), name="end a card's process")

    def _useless(self, found: Watched, run: CardRun, card: Card, alive: Mapping[str, str], now: float) -> Ending | None:
        """Why a process of this machine has to end now; None where it may go on."""
        if not _holds(run, card):
            if run.outcome not in OWN_WORD:
                return Ending.CANCELLED
            found.useless = found.useless or now
            return Ending(run.outcome) if now >= found.useless + LINGER else None
        if card.max_seconds and run.kind is RunKind.WORK and now >= run.started + card.max_seconds:
            return Ending.TIMED_OUT
        return Ending.RECLAIMED if self._is_gone(run, run.adopted and card.owner not in alive, now) else None

    def _is_gone(self, run: CardRun, missing: bool, now: float) -> bool:
        """Whether what is missing of a run was so at an earlier look too: after a suspension others need a moment."""
        if not missing:
            self._missing.pop(_key(run), None)
            return False
        return now >= self._missing.setdefault(_key(run), now) + SECOND_LOOK

    async def _attach(self, run: CardRun, card: Card, alive: Mapping[str, str], now: float) -> None:
        """Watch a process that another dispatcher started; end a run that never got one."""
        running = await self._machine.place(run).attach(run.exec_id)
        starting = _holds(run, card) and card.owner in alive and card.owner != self._by.owner
        is_gone = self._is_gone(run, running is None and not starting, now)
        if running is not None:
            self._watch(run, self._follow(run, running))
        elif is_gone:
            await self._over(run, None, Ending.RECLAIMED, "Its process never began, or left no trace.")

    async def _dismiss(self, card: Card) -> None:
        """Block a card whose person may not use the agent any more."""
        text = f"{card.person} may not use this agent any more."
        with suppress(HermesError):  # Somebody moved it.
            await self._board.move(self._by, card.id, Order(verb=Verb.BLOCK), text=text)

    def _watch(self, run: CardRun, work: Coroutine[None, None, None]) -> None:
        key = _key(run)
        self._watched[key] = Watched(task=spawn(work, name=f"card {run.card}"))
        self._watched[key].task.add_done_callback(lambda _task: self._watched.pop(key, None))

    async def _start(self, card: Card, run: CardRun) -> None:
        """Make the workspace and start the process."""
        if not self._may(card.person):
            await self._dismiss(card)
            await self._over(run, None, Ending.CANCELLED, "")
            return
        try:
            if run.kind is not RunKind.VALIDATE:
                folder, branch = await self._machine.workspaces.prepare(card)
                card = await self._set_folder(run, folder, branch)
        except HermesError as error:
            await self._over(
                run, None, Ending.CANCELLED if isinstance(error, LostLease) else Ending.GAVE_UP, str(error)
            )
            return
        try:
            running = await self._machine.place(run).start(run.exec_id, self._machine.command(self._board, card, run))
        except AlreadyStarted:
            return  # It is attached to at the next look.
        except HermesError as error:
            await self._over(run, None, Ending.SPAWN_FAILED, str(error))
            return
        await self._follow(run, running)

    async def _set_folder(self, run: CardRun, folder: str, branch: str) -> Card:
        def decide(found: Card) -> Change:
            if not found.owner or found.epoch != run.epoch:
                raise LostLease(f"{run.card} was moved.")
            host = self._machine.host if found.workspace is not Workspace.DIR else ""
            return Change(
                card=replace(found, folder=folder, branch=branch, host=host), kind="workspace", by=NAME, text=folder
            )

        return await self._board.cards.change(run.card, decide, promote)

    async def _follow(self, run: CardRun, running: Running) -> None:
        """Wait for the end of a process, end what it left behind, and record it."""
        found = self._watched[_key(run)]
        found.running = running
        ended = await running.wait()
        while not await running.kill():
            await self._clock.sleep(1.0)
        size = await running.size()
        said = (await running.read(max(0, size - OUTPUT), OUTPUT)).decode("utf-8", "replace").strip()
        await self._over(run, ended.code, found.ending, said)

    async def _over(self, run: CardRun, code: int | None, ending: Ending | None, said: str) -> None:
        """Record the end of a run whose process is gone."""
        if run.profile == COMMAND and code is not None and ending is None:
            text = f"Exit code {code} ({run.exec_id}).\n{said}".strip()
            receipt = Ending.FAILED if code else Ending.PASSED
            await self._board.end(run, Order(verb=Verb.RECEIPT, code=code, ending=receipt), code, text)
            return
        ending = ending or {0: Ending.GAVE_UP, RATE_LIMITED: Ending.RATE_LIMITED}.get(-1 if code is None else code)
        if ending is None:
            begun = any(each.epoch == run.epoch and each.session for each in await self._board.runs.of(run.card))
            ending = Ending.CRASHED if begun else Ending.SPAWN_FAILED
        text = said if ending in (Ending.SPAWN_FAILED, Ending.GAVE_UP) or code else ""
        await self._board.end(run, Order(verb=Verb.END, ending=ending), code, text)
        if ending is Ending.SPAWN_FAILED and run.profile in (await self._caps(self._clock.now())).paused:
            log.warning("no process of profile `%s` is started for %d minutes: %s", run.profile, PAUSE // 60, said)

    # Claims

    async def _caps(self, now: float) -> Caps:
        settings, last = self._board.settings, dict[str, list[str]]()
        for profile, outcome in await self._board.runs.recent(now - PAUSE):
            last.setdefault(profile, []).append(outcome)
        failed = [Ending.SPAWN_FAILED.value] * SPAWN_FAILURES
        return Caps(
            most=settings.max_running,
            per_profile=settings.max_per_profile,
            paused=frozenset(name for name, outcomes in last.items() if outcomes[-SPAWN_FAILURES:] == failed),
            divides=DIVIDED if settings.auto_decompose else 0,
        )

    # What time brings

    async def _notice(self, opened: Sequence[tuple[CardRun, Card]], now: float) -> None:
        for run, card in opened:
            if not run.reported and now >= run.seen + 60 * self._board.settings.stale_minutes:
                minutes = round((now - run.seen) / 60)
                letter = f"No progress for {minutes} minutes: {card.id} {card.title}\n\n{run.note}".strip()
                said = partial(Change, kind="stale", by=NAME, letter=letter)
                await self._board.runs.report_stale(run, partial(_changed, said))

    async def _clean(self, now: float) -> None:
        for card in await self._board.cards.uncleaned(now - DAY * self._board.settings.keep_days, self._machine.host):
            try:
                kind, text = "cleaned", await self._machine.workspaces.remove(card)
            except Kept as why:
                kind, text = "kept", str(why)
            said = partial(Change, kind=kind, by=NAME, text=text)
            await self._board.cards.change(card.id, partial(_changed, said, cleaned=True), promote)


def _changed(change: Callable[..., Change], card: Card, *, cleaned: bool = False) -> Change:
    return change(card=replace(card, cleaned=cleaned))


def _holds(run: CardRun, card: Card) -> bool:
    """Whether the card is in the hands of this run."""
    return bool(card.owner) and card.epoch in (run.epoch, run.epoch + 1)


def _key(run: CardRun) -> Key:
    return run.card, run.epoch


def _marks(opened: Sequence[tuple[CardRun, Card]]) -> frozenset[tuple[str, int, int]]:
    """What tells that something became of an open run or its card."""
    return frozenset((run.card, run.epoch, card.version) for run, card in opened)


async def one_round(dispatcher: Dispatcher, clock: Clock) -> int:
    """Do what is due until nothing is, and all processes that began are there; how many are open."""
    while True:
        if (due := await dispatcher.next_due()) is not None and due <= clock.now():
            await dispatcher.fire()
        elif not dispatcher.starts:
            return dispatcher.at_work
        await clock.sleep(LOOK)


def _claimed(by: By, now: float, card: Card) -> tuple[Change, RunKind, str]:
    change = Change(card=moved(card, Order(verb=Verb.CLAIM), by, now), kind="claimed", by=NAME)
    if card.status is Status.TRIAGE:
        return change, RunKind.DECOMPOSE, card.assignee
    if card.status is not Status.REVIEW:
        return change, RunKind.WORK, card.assignee
    is_command = card.validator.startswith(COMMAND)
    return change, RunKind.VALIDATE, COMMAND if is_command else card.validator.removeprefix(PROFILE)
