"""Texts of every kind reach the shell as they stand, in every place, or are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.sandbox.place import Command, Place, PlaceFailed


async def test_a_very_long_command_runs(place: Place, plain: Command) -> None:
    text = f"echo {'x' * 300_000} | wc -c"

    running = await place.start("g/a", replace(plain, text=text))

    assert (await running.wait()).code == 0
    assert await running.read(0, 100) == b"300001\n"


@pytest.mark.parametrize("text", ["echo a\0b", "echo \ud800"])
async def test_what_no_shell_can_read_is_refused_and_nothing_claimed(place: Place, plain: Command, text: str) -> None:
    with pytest.raises(PlaceFailed):
        await place.start("g/a", replace(plain, text=text))

    assert await place.attach("g/a") is None


async def test_a_command_of_several_lines_with_backslashes_is_attached_to_as_it_was(
    place: Place, make: Callable[[], Place], plain: Command
) -> None:
    folder = Path(plain.folder, "a\\nb")
    await asyncio.to_thread(folder.mkdir)
    text = "printf '%s' 'a\\nb'\necho \"\\\\t\""
    running = await place.start("g/a", replace(plain, text=text, workdir=folder.name, background=True))
    await running.wait()

    again = await make().attach("g/a")

    assert again is not None
    assert (again.command, again.cwd) == (running.command, str(folder))
    assert await again.read(0, 100) == b"a\\nb\\t\n"
