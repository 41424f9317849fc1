"""Ordering and time of recorded and replayed sessions: clocks, ids, mail gates and stops of a track."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TypeVar

from hermes_agent.agent.mailbox import OpenGate
from hermes_agent.core.clock import Clock, Ids, RandomIds
from hermes_agent.core.errors import RequestDiffers
from hermes_agent.core.events import Outcome
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
    """Whether the line records a cancelled answer or call."""
    return (isinstance(line, Answered) and line.cut) or (isinstance(line, Called) and line.is_cut)


def is_from_outside(line: Turn) -> bool:
    """Whether the line records an outside event: a message, command, stop or cancellation."""
    return isinstance(line, Outside) or is_cut(line)


def in_order(lines: Sequence[Turn]) -> list[Turn]:
    """Reorder messages to where they took effect: a run may read one just before its arrival is written, or end just
    before it notices one."""
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
    """Clock that returns the last time it was set to."""

    def __init__(self, at: float, t: float) -> None:
        self._at, self._t = at, t

    def set(self, at: float, t: float) -> None:
        """Set the time."""
        self._at, self._t = at, t

    def now(self) -> float:
        """Seconds since 1970 at the last input."""
        return self._at

    def monotonic(self) -> float:
        """The monotonic time at the last input."""
        return self._t

    async def sleep(self, seconds: float) -> None:  # noqa: ARG002  in a recording no time passes by itself
        """Yield to other tasks once."""
        await asyncio.sleep(0)


class TrackIds:
    """Deterministic ids of a track; each run has its own stream, so that an earlier or later stop does not shift the
    next run's ids."""

    def __init__(self, seed: str, track: str) -> None:
        self._seed, self._track, self._runs = seed, track, 0
        self._ids = ids_of(seed, track)

    def restart(self) -> None:
        """Switch to the next run's stream."""
        self._runs += 1
        self._ids = ids_of(self._seed, f"{self._track}/run {self._runs}")

    def session(self, now: float) -> str:
        """As `Ids`."""
        return self._ids.session(now)

    def short(self) -> str:
        """As `Ids`."""
        return self._ids.short()


def ids_of(seed: str, stream: str) -> Ids:
    """Deterministic ids for a seed and stream name."""
    return RandomIds(int.from_bytes(hashlib.sha256(f"{seed}/{stream}".encode()).digest()))


class RecordedTrack:
    """Writer of one track: one ordered sequence of events with a frozen clock."""

    def __init__(self, name: str, machine: Clock, seed: str, file: CassetteFile) -> None:
        self.name = name
        self.ids = TrackIds(seed, name)
        self.file = file
        self._machine = machine
        self.clock = TapeClock(machine.now(), machine.monotonic())
        self.stops = RecordedStops(self)

    def tick(self) -> None:
        """Advance the track's clock to now, as an input came in."""
        self.clock.set(self._machine.now(), self._machine.monotonic())

    def add(self, line: Moment) -> None:
        """Write a line with the track's time."""
        self.file.add(replace(line, at=self.clock.now(), t=self.clock.monotonic()))  # type: ignore[arg-type]  # each moment is a line


class RecordedGate(OpenGate):
    """Mail gate (`agent.Gate`) that records which mail a run found."""

    def __init__(self, track: RecordedTrack) -> None:
        self._track = track

    def found(self, source_ids: Sequence[str]) -> None:
        """Record the messages found."""
        self._track.add(MailRead(track=self._track.name, mail=tuple(source_ids)))


class RecordedStops:
    """Delays stops of one session to points that a replay can reproduce.

    A replay can only stop a run while it waits for a model, tool or person. So a stop that comes while the run
    computes waits for the next such point and is recorded there; from then on no new input is accepted. A stop that
    finds no such point before the run ends has no effect.
    """

    def __init__(self, track: RecordedTrack) -> None:
        self._track = track
        self._waits: set[Hashable] = set()
        self._wanted: tuple[str, Strike] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._begun = False
        self._struck = False

    def when(self, reason: str, strike: Strike) -> None:
        """Request a stop; `strike` performs it."""
        if self._wanted is None:
            self._wanted = reason, strike
            self._observe()

    def begun(self) -> None:
        """The run has started."""
        self._begun = True
        self._observe()

    def over(self) -> None:
        """The run has ended."""
        if self._timer is not None:
            self._timer.cancel()
        self._waits.clear()
        self._wanted, self._timer, self._begun, self._struck = None, None, False, False

    async def entered(self, what: Hashable) -> None:
        """The run starts waiting for `what`; a pending stop strikes now."""
        self._waits.add(what)
        self._observe()
        await self.passed()

    def left(self, what: Hashable) -> None:
        """The wait is over."""
        self._waits.discard(what)

    async def passed(self) -> None:
        """Return at once, unless a stop struck: then wait for the cancellation."""
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
    """Reader of one track: enforces the recorded order, each event waits for its turn.

    `skipped`: kinds of lines that are not replayed here.
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
        """The next line; None at the end."""
        return self._lines[self._place] if self._place < len(self._lines) else None

    @property
    def inside(self) -> Turn | None:
        """The next line caused by the run itself; None at the end."""
        rest = self._lines[self._place :]
        return next((line for line in rest if not isinstance(line, Outside)), None)

    async def until(self, kind: type[Turn], what: str) -> None:
        """Wait until a line of this kind is next, without consuming it."""
        while not isinstance(self.coming, kind):
            if self.coming is None:
                raise RequestDiffers(f"The recording has no such thing here any more: {what}.")
            await self._wait(what)

    @property
    def will_be_stopped(self) -> bool:
        """Whether the current run is stopped in the recording. If its end was not recorded, a cancelled call or
        answer counts as a stop."""
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
        """The next matching line of the current run, without waiting or consuming."""
        for place in range(self._place, len(self._lines)):
            line = self._lines[place]
            if isinstance(line, kind) and fits(line):
                return line
            if isinstance(line, RunOver):
                return None
        return None

    @property
    def cuts(self) -> list[Answered | Called]:
        """The lines that the next stop cancels."""
        found: list[Answered | Called] = []
        for line in self._lines[self._place :]:
            if isinstance(line, Answered | Called) and is_cut(line):
                found.append(line)
            elif found or not isinstance(line, Outside):
                break
        return found

    def within(self, run: ReplayedTrack) -> None:
        """Join the stop handling of that run's track."""
        self._stuck = run._stuck

    async def hang(self) -> None:
        """Wait to be cancelled, as in the recording."""
        self._stuck.set()
        await asyncio.Event().wait()

    async def stuck(self) -> None:
        """Wait until the run has reached the point where it was stopped."""
        await self._stuck.wait()
        self._stuck.clear()
        self.has_stuck = True

    def when(self, reason: str, strike: Strike) -> None:  # noqa: ARG002  the recording says why
        """Stop the run only if a recorded stop is next and everything before it is done: its own limits may fire
        earlier now."""
        coming = self.coming
        if self.has_stuck and coming is not None and (isinstance(coming, StopAsked) or is_cut(coming)):
            strike()

    def unstuck(self) -> None:
        """Reset the stop state after a run."""
        self._stuck.clear()
        self.has_stuck = False

    async def turn(self, kind: type[T], fits: Callable[[T], bool], what: str) -> T:
        """Wait until everything before the next matching line has come, then consume it and set the clock to it.

        The caller must act without awaiting anything else in between. Raises `RequestDiffers` if no line matches.
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
        """Wait until an outside event or cancellation is next, without consuming it; None if no more come."""
        while self._place <= self._last:
            if is_from_outside(line := self._lines[self._place]):
                return line
            await self._moved.wait()
        return None

    def come(self, line: Turn) -> None:
        """Consume this line."""
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
    """Mail gate (`agent.Gate`) that finds the mail that was found at the same place of the recording."""

    def __init__(self, track: ReplayedTrack) -> None:
        self._track = track

    def may_have(self, rung: bool) -> bool:  # noqa: ARG002  the recording knows
        """Whether the recording continues with an inbox read, or with mail for the next run."""
        inside = self._track.inside
        return isinstance(inside, MailRead) or (isinstance(inside, RunOver) and inside is not self._track.coming)

    async def ready(self) -> None:
        """Wait until the recording continues with an inbox read."""
        await self._track.until(MailRead, "mail is looked for")

    async def accepted(self) -> frozenset[str] | None:
        """The mail found in the recording."""
        if isinstance(self._track.inside, MailRead):
            line = await self._track.turn(MailRead, lambda _line: True, "mail is looked for")
            return frozenset(line.mail)
        if isinstance(self._track.inside, RunOver) and self._track.will_be_stopped:
            await self._track.hang()
        if isinstance(self._track.inside, RunOver):
            await self._track.until(RunOver, "mail for the next run comes")
        return frozenset()
