"""When a stop strikes a recorded run, and when a replayed one."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.spending import Limits
from hermes_agent.replay.cassette import read_cassette
from hermes_agent.replay.lines import Answered, RunBegun, StopAsked
from hermes_agent.replay.recorder import Recorder
from hermes_agent.replay.tracks import LATEST, RecordedStops, ReplayedTrack
from tests.replay.tapes import PROCESS, SESSION, begin


class Run:
    """A recorded run that counts how often it was struck."""

    def __init__(self, folder: Path, *, begun: bool = True) -> None:
        self.recorder = Recorder(folder / "tape.jsonl", SystemClock())
        self.recorder.start(str, PROCESS)
        self.path = folder / "tape.jsonl"
        self.strikes = 0
        if begun:
            self.begin()

    @property
    def stops(self) -> RecordedStops:
        return self.recorder.track(SESSION).stops

    def begin(self) -> None:
        begin(self.recorder)

    def strike(self) -> None:
        self.strikes += 1

    @property
    def reasons(self) -> list[str]:
        return [line.reason for line in read_cassette(self.path).lines if isinstance(line, StopAsked)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


async def test_a_stop_strikes_at_once_while_the_run_waits_for_something(run: Run):
    await run.stops.entered("a call")

    run.stops.when("enough", run.strike)

    assert run.strikes == 1
    assert run.reasons == ["enough"]


async def test_a_stop_that_finds_the_run_busy_with_itself_strikes_where_it_waits_next(run: Run):
    await run.stops.entered("a call")
    run.stops.left("a call")
    run.stops.when("enough", run.strike)
    assert run.strikes == 0

    waiting = asyncio.create_task(run.stops.entered("the model"))
    await asyncio.sleep(0)

    assert run.strikes == 1
    assert not waiting.done()  # nothing new begins any more
    waiting.cancel()


async def test_a_run_that_waits_for_nothing_is_struck_after_a_while_all_the_same(run: Run):
    loop = asyncio.get_running_loop()
    began = loop.time()
    run.stops.when("enough", run.strike)

    while not run.strikes:
        await asyncio.sleep(0.01)

    assert loop.time() - began >= LATEST * 0.9


async def test_a_stop_that_comes_before_the_run_waits_for_its_beginning(tmp_path: Path):
    run = Run(tmp_path, begun=False)
    run.stops.when("enough", run.strike)
    await run.stops.passed()
    run.begin()

    await run.stops.entered("the model")

    assert run.strikes == 1
    kinds = [line.kind for line in read_cassette(run.path).lines]
    assert kinds.index("run") < kinds.index("stop")


async def test_a_stop_that_finds_no_place_before_the_run_ends_is_none(run: Run):
    run.stops.when("enough", run.strike)
    run.stops.over()
    run.begin()

    await run.stops.entered("the model of the next run")

    assert run.strikes == 0
    assert run.reasons == []


async def test_the_first_stop_counts(run: Run):
    await run.stops.entered("a call")
    for reason in ("first", "second"):
        run.stops.when(reason, run.strike)

    assert run.strikes == 1
    assert run.reasons == ["first"]


async def test_after_a_stop_nothing_comes_in_that_was_on_its_way(run: Run):
    await run.stops.entered("a call")
    await run.stops.passed()
    run.stops.when("enough", run.strike)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(LATEST / 5):
            await run.stops.passed()


async def test_a_replay_strikes_where_the_recording_did_and_nowhere_else():
    begun = RunBegun(track="1", at=1.0, t=1.0, limits=Limits(), effort="medium")
    cut = Answered(n=1, track="1", at=3.0, t=3.0, pieces=(), cut=True)
    struck: list[str] = []

    for lines in ([begun], [StopAsked(track="1", at=2.0, reason="enough")], [cut], []):
        track = ReplayedTrack("1", "seed", lines)
        strike = partial(struck.append, lines[0].kind if lines else "")
        track.when("now", strike)
        assert not struck or struck[-1] != strike.args[0]  # Something of the run may still come before it.
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await track.hang()
        await track.stuck()
        track.when("now", strike)

    assert struck == ["stop", "answered"]
