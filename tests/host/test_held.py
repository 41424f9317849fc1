"""A file lock that is waited for without blocking the event loop."""

import asyncio
from pathlib import Path

import pytest

from hermes_agent.core.errors import HomeError
from hermes_agent.host.held import held


async def test_two_never_hold_it_at_once(tmp_path: Path) -> None:
    inside: list[int] = []

    async def one(number: int) -> None:
        async with held(tmp_path / "a.lock"):
            inside.append(number)
            await asyncio.sleep(0)
            assert inside == [number]
            inside.remove(number)

    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(one(number))


async def test_a_lock_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="cannot be locked"):
        async with held(tmp_path / "nowhere" / "a.lock"):
            pass
