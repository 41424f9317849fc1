"""The switch that ends a run from outside."""

import asyncio

import pytest

from hermes_agent.agent.stop import TIME_UP, WITHDRAWN, CutShort, StopSwitch, Strike
from hermes_agent.core.events import Outcome


async def test_a_stop_ends_what_runs_within():
    switch = StopSwitch()
    asyncio.get_running_loop().call_soon(switch.stop, "enough")

    with pytest.raises(CutShort):
        async with switch.within(None):
            await asyncio.Event().wait()

    assert switch.verdict(3).reason == "enough"
    assert switch.verdict(3).outcome is Outcome.STOPPED


def test_a_run_with_nothing_left_to_answer_ends_without_a_word():
    switch = StopSwitch()
    switch.stop(WITHDRAWN)

    ended = switch.verdict(1)
    assert (switch.withdrawn, ended.outcome, ended.text, ended.reason) == (True, Outcome.STOPPED, "", WITHDRAWN)


async def test_a_stop_before_the_beginning_ends_it_as_it_begins():
    switch = StopSwitch()
    switch.stop()

    with pytest.raises(CutShort):
        async with switch.within(60):
            await asyncio.Event().wait()


async def test_a_second_stop_while_the_first_one_takes_its_time_does_no_harm():
    switch = StopSwitch()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            switch.stop("again")
            await asyncio.sleep(0)

    asyncio.get_running_loop().call_soon(switch.stop, "first")
    with pytest.raises(CutShort):
        async with switch.within(None):
            await slow()

    assert switch.verdict(0).reason == "first"


async def test_a_stop_after_the_end_does_no_harm():
    switch = StopSwitch()
    async with switch.within(60):
        pass
    switch.stop()

    assert switch.stopped


async def test_the_clock_ends_it_as_a_limit():
    switch = StopSwitch()
    with pytest.raises(CutShort):
        async with switch.within(0.01):
            await asyncio.Event().wait()

    assert not switch.stopped
    assert switch.verdict(2).outcome is Outcome.LIMIT


async def test_a_stop_and_the_clock_strike_when_they_are_let():
    wanted: list[tuple[str, Strike]] = []
    switch = StopSwitch(lambda reason, strike: wanted.append((reason, strike)))

    with pytest.raises(CutShort):
        async with switch.within(0.01):
            switch.stop("enough")
            assert not switch.stopped
            while len(wanted) < 2:
                await asyncio.sleep(0.005)
            for _, strike in wanted:
                strike()
            await asyncio.Event().wait()

    assert [reason for reason, _ in wanted] == ["enough", TIME_UP]
    assert switch.verdict(1).reason == "enough"
