"""Whatever a channel is doing, it ends within two seconds when it is cancelled, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes_agent.core.chat import Conversation
from hermes_agent.gateway.channel import Kind, Part
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.host.late import late
from tests.cancelling import STOP_SECONDS, Work, awaits, cancelled, sockets
from tests.contracts.channels import CASES, Ear, Stage, needs
from tests.doubles.telegram import TOKEN

EVERY = pytest.mark.parametrize("name", sorted(CASES))
POINTS = 6
"""Awaits that are tried of each; all of them with `--full`."""


@asynccontextmanager
async def played(name: str, folder: Path) -> AsyncIterator[tuple[Stage, Ear]]:
    """A channel to which somebody says something, and of which nothing is left at the end."""
    before = sockets()
    async with CASES[name].stage(folder) as stage:
        for number in range(2):
            await stage.double.say(f"hello {number}", chat=stage.chat, user=stage.person)
        yield stage, Ear()
        async with asyncio.timeout(STOP_SECONDS):
            await stage.channel.close()
    async with asyncio.timeout(STOP_SECONDS):
        while sockets() - before:
            await asyncio.sleep(0.01)


def some(made: int, request: pytest.FixtureRequest) -> list[int]:
    points = range(1, made + 1)
    return (
        list(points)
        if request.config.getoption("--full", default=False)
        else sorted(random.sample(points, min(made, POINTS)))
    )


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # anyio's, cancelled before they began
@pytest.mark.parametrize("everything", [False, True], ids=["it", "everything"])
@EVERY
async def test_listening_ends_at_whichever_await_it_is_cancelled(
    name: str, everything: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with played(name, tmp_path) as (stage, ear):
        made = await awaits(lambda: stage.channel.listen(ear), lambda: ear.until(lambda: len(ear.heard) == 2))
    assert made > 5

    for at in some(made, request):
        async with played(name, tmp_path / str(at)) as (stage, ear):
            left = await cancelled(lambda: stage.channel.listen(ear), at, everything=everything)
        assert left == [], at


@EVERY
async def test_an_end_that_is_cancelled_is_made_again(name: str, tmp_path: Path) -> None:
    for at in range(1, 4):
        async with played(name, tmp_path / str(at)) as (stage, ear):
            listening = asyncio.create_task(stage.channel.listen(ear))
            await ear.until(lambda: len(ear.heard) == 2)
            listening.cancel()
            assert await cancelled(stage.channel.close, at) == []
            await asyncio.wait((listening,), timeout=STOP_SECONDS)
            assert listening.done()


@pytest.mark.parametrize("call", ["listen", "check", "send"])
@EVERY
async def test_a_platform_that_says_nothing_holds_nobody_up(name: str, call: str, tmp_path: Path) -> None:
    before, case = sockets(), CASES[name]
    mute = socket.create_server(("127.0.0.1", 0))  # Connections are made, and nobody takes them.
    given = needs(tmp_path, case.server(mute.getsockname()[1]), TOKEN)
    kind: Kind = late(CHANNELS[name])
    channel = kind.make(given)
    to = Conversation(platform=name, chat="ann@people.test" if name == "email" else "1")
    works: dict[str, Work] = {
        "listen": lambda: channel.listen(Ear()),
        "check": channel.check,
        "send": lambda: channel.send(to, Part(text="Hello"), "s1:r1:0"),
    }

    assert await cancelled(works[call], 0, reached=0.3) == []

    async with asyncio.timeout(STOP_SECONDS):
        await channel.close()
    await given.http.close()
    mute.close()
    async with asyncio.timeout(STOP_SECONDS):
        while sockets() - before:
            await asyncio.sleep(0.01)
