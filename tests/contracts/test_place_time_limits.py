"""Every place ends a command itself when its time is over, whether or not anybody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.sandbox.place import Command, Place
from tests.contracts.test_place import STUBBORN, until_written
from tests.sandbox.beats import beating, silent


@pytest.mark.parametrize("text", ["sleep 60; sleep 61", *STUBBORN.values()], ids=["plain", *STUBBORN])
async def test_a_command_whose_time_is_over_is_ended_with_all_that_it_started(
    place: Place, make: Callable[[], Place], plain: Command, text: str
) -> None:
    beat = beating(Path(plain.folder))
    loop = asyncio.get_running_loop()
    began = loop.time()

    running = await place.start("g/a", replace(plain, text=f"{beat}echo ready; {text}", limit=1.5))
    await until_written(running, b"ready")
    await silent(Path(plain.folder), 8)

    assert 1.4 < loop.time() - began < 6
    again = await make().attach("g/a")
    assert again is not None
    ended = await again.wait()
    assert ended.code in (137, 143)
    assert ended.seconds >= 1.4
    assert not ended.children


async def test_what_a_command_left_behind_goes_on_after_its_limit(place: Place, plain: Command) -> None:
    running = await place.start("g/a", replace(plain, text="(sleep 2; echo late) & echo done", limit=1.0))
    ended = await running.wait()

    assert (ended.code, ended.children) == (0, True)
    await until_written(running, b"late")


async def test_a_command_without_a_limit_has_none(place: Place, plain: Command) -> None:
    running = await place.start("g/a", replace(plain, text="sleep 1.5; exit 3", limit=0.0))

    assert (await running.wait()).code == 3


async def test_a_background_command_may_have_a_limit_too(place: Place, plain: Command) -> None:
    running = await place.start("g/a", replace(plain, text="sleep 60", background=True, limit=0.5))

    async with asyncio.timeout(5):
        assert (await running.wait()).code in (137, 143)
