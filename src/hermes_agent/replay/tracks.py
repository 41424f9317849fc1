"""Time, ids, mail and stops of a recorded or replayed track: time stands still between the things that come in."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TypeVar

from hermes_agent.agent.mailbox import OpenGate
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import RequestDiffers
from hermes_agent.core.events import Outcome
from hermes_agent.core.ids import Ids, RandomIds
from hermes_agent.replay.cassette import CassetteFile
from hermes_agent.replay.lines import (
    Answered,
    Arrived,
    Asked,
    Called,
    Changed,
    MailRead,
    Moment,
    Outside,
    RunBegun,
    RunOver,
    StopAsked,
    Turn,
)

PATIENCE = 10.0
"""Seconds of the machine after which a replay that waits for its turn says for what."""

LATEST = 0.5
"""Seconds after which a stop strikes, whatever the run is doing."""

T = TypeVar("T", bound=Turn)
Strike = Callable[[], None]
Timed = RunBegun | Asked | Answered | Called
"""The lines that move the clock of their track."""


def is_cut(line: Turn) -> bool:
    """Whether the line tells of something that was cut short from outside."""
    return (isinstance(line, Answered) and line.cut) or (isinstance(line, Called) and line.is_cut)


def is_from_outside(line: Turn) -> bool:
    """Whether the line tells of something that neither a model nor a tool did."""
    return isinstance(line, Outside) or is_cut(line)


def in_order(lines: Sequence[Turn]) -> list[Turn]:
    """The lines with each message where it mattered: a run may find one just before it is written down that it came,
    or end just before it knows of one."""
    ordered: list[Turn] = []
    for line in lines:
        place = len(ordered)
        if isinstance(line, RunOver) and line.released:
            while place and isinstance(ordered[place - 1], Arrived | Changed):
                place -= 1
        elif isinstance(line, Arrived):
            place = next((at for at, each in enumerate(ordered) if _needs(each, line)), place)
        ordered.insert(place, line)
    return ordered


def _needs(line: Turn, arrived: Arrived) -> bool:
    return isinstance(line, MailRead) and arrived.inbound.source_id in line.mail


class TapeClock:
    """A clock that says the moment it was set to last."""

    def __init__(self, at: float, t: float) -> None:
        self._at, self._t = at, t

    def set(self, at: float, t: float) -> None:
        """It is then now."""
        self._at, self._t = at, t

    def now(self) -> float:
        """Seconds since 1970, as they were at the last thing that came in."""
        return self._at

    def monotonic(self) -> float:
        """The same moment of the monotonic clock."""
        return self._t

    async def sleep(self, seconds: float) -> None:  # noqa: ARG002  in a recording no time passes by itself
        """Let the others run."""
        await asyncio.sleep(0)


class TrackIds:
    """The ids of a track; each run has a stream of its own, so that a run that was stopped earlier or later changes
    nothing in the next one."""

    def __init__(self, seed: str, track: str) -> None:
        self._seed, self._track, self._runs = seed, track, 0
        self._ids = ids_of(seed, track)

    def restart(self) -> None:
        """A run begins."""
        self._runs += 1
        self._ids = ids_of(self._seed, f"{self._track}/run {self._runs}")

    def session(self, now: float) -> str:
        """As `Ids`."""
        return self._ids.session(now)

    def short(self) -> str:
        """As `Ids`."""
        return self._ids.short()


def ids_of(seed: str, stream: str) -> Ids:
    """The ids of one stream: the same ones for the same seed."""
    return RandomIds(int.from_bytes(hashlib.sha256(f"{seed}/{stream}".encode()).digest()))


class RecordedTrack:
    """One order of things while it is recorded."""

    def __init__(self, name: str, machine: Clock, seed: str, file: CassetteFile) -> None:
        self.name = name
        self.ids = TrackIds(seed, name)
        self.file = file
        self._machine = machine
        self.clock = TapeClock(machine.now(), machine.monotonic())
        self.stops = RecordedStops(self)

    def tick(self) -> None:
        """Something came in: what the machine's clock says holds until the next thing comes."""
        self.clock.set(self._machine.now(), self._machine.monotonic())

    def add(self, line: Moment) -> None:
        """Write a line, with the moment that it is."""
        self.file.add(replace(line, at=self.clock.now(), t=self.clock.monotonic()))  # type: ignore[arg-type]  # each moment is a line


class RecordedGate(OpenGate):
    """An `agent.Gate` that writes down what is found."""

    def __init__(self, track: RecordedTrack) -> None:
        self._track = track

    def found(self, source_ids: Sequence[str]) -> None:
        """This look found something."""
        self._track.add(MailRead(track=self._track.name, mail=tuple(source_ids)))


class RecordedStops:
    """The stops of one session.

    A replay has no milliseconds: it can strike where a model, a tool or a person is waited for, and nowhere else. So a
    stop that comes while the run is busy with itself waits for the next such place, and is written down when it
    strikes; from then on nothing new comes in. One that finds no such place before the run ends is none.
    """

    def __init__(self, track: RecordedTrack) -> None:
        self._track = track
        self._waits: set[Hashable] = set()
        self._wanted: tuple[str, Strike] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._begun = False
        self._struck = False

    def when(self, reason: str, strike: Strike) -> None:
        """Somebody, or the clock, wants the run to end."""
        if self._wanted is None:
            self._wanted = reason, strike
            self._observe()

    def begun(self) -> None:
        """A run has begun."""
        self._begun = True
        self._observe()

    def over(self) -> None:
        """The run has ended."""
        if self._timer is not None:
            self._timer.cancel()
        self._waits.clear()
        self._wanted, self._timer, self._begun, self._struck = None, None, False, False

    async def entered(self, what: Hashable) -> None:
        """The run waits for this from now on; a stop that was waiting for that strikes."""
        self._waits.add(what)
        self._observe()
        await self.passed()

    def left(self, what: Hashable) -> None:
        """It has come."""
        self._waits.discard(what)

    async def passed(self) -> None:
        """Return where nothing has struck; otherwise the caller is about to be cancelled."""
        if self._struck:
            await asyncio.sleep(LATEST)

    def _observe(self) -> None:
        if self._wanted is None or self._struck or not self._begun:
            return
        if self._waits:
            self._strike()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LATEST, self._strike)

    def _strike(self) -> None:
        if self._wanted is not None and not self._struck:
            self._struck = True
            reason, strike = self._wanted
            self._track.add(StopAsked(track=self._track.name, reason=reason))
            strike()


class ReplayedTrack:
    """One order of things while it is replayed: what comes has to wait until it is its turn.

    `skipped` are kinds of lines that nobody brings here.
    """

    def __init__(self, name: str, seed: str, lines: Sequence[Turn], skipped: tuple[type[Turn], ...] = ()) -> None:
        self.name = name
        self.ids = TrackIds(seed, name)
        first = next((line for line in lines if isinstance(line, Timed)), None)
        self.clock = TapeClock(first.at, first.t) if first is not None else TapeClock(0.0, 0.0)
        self._lines = in_order([line for line in lines if not isinstance(line, skipped)])
        self._last = max((place for place, line in enumerate(self._lines) if is_from_outside(line)), default=-1)
        self.is_empty = not self._lines
        self._place = 0
        self._moved = asyncio.Event()
        self._stuck = asyncio.Event()
        self.has_stuck = False

    @property
    def coming(self) -> Turn | None:
        """What comes next; None where the recording is over."""
        return self._lines[self._place] if self._place < len(self._lines) else None

    @property
    def inside(self) -> Turn | None:
        """What the run itself does next; None where the recording is over."""
        rest = self._lines[self._place :]
        return next((line for line in rest if not isinstance(line, Outside)), None)

    async def until(self, kind: type[Turn], what: str) -> None:
        """Return when a line of this kind comes next, without taking it."""
        while not isinstance(self.coming, kind):
            if self.coming is None:
                raise RequestDiffers(f"The recording has no such thing here any more: {what}.")
            await self._wait(what)

    @property
    def will_be_stopped(self) -> bool:
        """Whether the run that is under way ends before it has done all that it would do. A process may leave before it
        has written down how its last run ended: what was cut short then was stopped."""
        over = self.ahead(RunOver, lambda _line: True)
        return (over is None or over.outcome in (Outcome.STOPPED, Outcome.LIMIT)) and self._stop_comes(over)

    def _stop_comes(self, over: RunOver | None) -> bool:
        for line in self._lines[self._place :]:
            if line is over:
                return False
            if isinstance(line, StopAsked) or is_cut(line):
                return True
        return False

    def ahead(self, kind: type[T], fits: Callable[[T], bool]) -> T | None:
        """The next line of this kind that fits, up to the end of the run, without waiting for it."""
        for place in range(self._place, len(self._lines)):
            line = self._lines[place]
            if isinstance(line, kind) and fits(line):
                return line
            if isinstance(line, RunOver):
                return None
        return None

    @property
    def cuts(self) -> list[Answered | Called]:
        """What is cut short next, by the stop that comes next where one does."""
        found: list[Answered | Called] = []
        for line in self._lines[self._place :]:
            if isinstance(line, Answered | Called) and is_cut(line):
                found.append(line)
            elif found or not isinstance(line, Outside):
                break
        return found

    def within(self, run: ReplayedTrack) -> None:
        """What waits here to be stopped is part of that run."""
        self._stuck = run._stuck

    async def hang(self) -> None:
        """Wait to be stopped, as then."""
        self._stuck.set()
        await asyncio.Event().wait()

    async def stuck(self) -> None:
        """Return when the run has done all that it did before it was stopped."""
        await self._stuck.wait()
        self._stuck.clear()
        self.has_stuck = True

    def when(self, reason: str, strike: Strike) -> None:  # noqa: ARG002  the recording says why
        """Strike where a stop comes next, and all before it is done: what stopped the run then may be sooner now."""
        coming = self.coming
        if self.has_stuck and coming is not None and (isinstance(coming, StopAsked) or is_cut(coming)):
            strike()

    def unstuck(self) -> None:
        """The run that was stopped is over."""
        self._stuck.clear()
        self.has_stuck = False

    async def turn(self, kind: type[T], fits: Callable[[T], bool], what: str) -> T:
        """The next line of this kind that fits, when everything before it has come; the clock then says its moment.

        Nothing of the caller's may wait between this and what it does with the moment. Raises `RequestDiffers` where
        the recording has no such line any more.
        """
        while True:
            line = self.ahead(kind, fits)
            if line is None and self.will_be_stopped:
                await self.hang()
            if line is None:
                raise RequestDiffers(f"The recording has no such thing here any more: {what}.")
            if line is self.coming:
                self.come(line)
                return line
            await self._wait(what)

    async def next_from_outside(self) -> Turn | None:
        """Wait until a message, a stop, a command or something that is cut short comes next, without taking it; None
        where none comes any more."""
        while self._place <= self._last:
            if is_from_outside(line := self._lines[self._place]):
                return line
            await self._moved.wait()
        return None

    def come(self, line: Turn) -> None:
        """This line is what comes now."""
        self._place += 1
        if isinstance(line, Timed):
            self.clock.set(line.at, line.t)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def _wait(self, what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._moved.wait()
        except TimeoutError as error:
            coming = self.coming
            assert coming is not None  # what is waited for is further on
            raise RequestDiffers(
                f"The recording goes on with something else (`{coming.kind}`) than what is done now: {what}."
            ) from error


class ReplayedGate(OpenGate):
    """An `agent.Gate` that finds what was found at the same place of the recording."""

    def __init__(self, track: ReplayedTrack) -> None:
        self._track = track

    def may_have(self, rung: bool) -> bool:  # noqa: ARG002  the recording knows
        """Whether the recording goes on with a look, or with mail for the next run."""
        inside = self._track.inside
        return isinstance(inside, MailRead) or (isinstance(inside, RunOver) and inside is not self._track.coming)

    async def ready(self) -> None:
        """When the recording goes on with a look."""
        await self._track.until(MailRead, "mail is looked for")

    async def accepted(self) -> frozenset[str] | None:
        """The mail that was found then."""
        if isinstance(self._track.inside, MailRead):
            line = await self._track.turn(MailRead, lambda _line: True, "mail is looked for")
            return frozenset(line.mail)
        if isinstance(self._track.inside, RunOver) and self._track.will_be_stopped:
            await self._track.hang()
        if isinstance(self._track.inside, RunOver):
            await self._track.until(RunOver, "mail for the next run comes")
        return frozenset()
