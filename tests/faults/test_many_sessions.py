"""A server in which many sessions act in the same moment, and which is killed in the middle: each is answered.

Eight sessions and a kill. `--full`: up to 200 sessions, twenty rounds each, for every tool.
"""

from __future__ import annotations

import asyncio
import logging
import random
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from hermes_agent.host.paths import Home
from hermes_agent.store.database import open_store
from hermes_agent.store.inbox import Ending
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import settle_home
from tests.children import started
from tests.journeys.test_many_at_once import CALLS, UNASKED, one_call

log = logging.getLogger(__name__)
KEY = "a-key-of-sixteen-characters"
SETTINGS = f"{UNASKED}api:\n  port: 0\nmemory:\n  memory_char_limit: 100000\n"
SIZES = (1, 2, 4, 6, 8, 16, 32, 64, 200)
ROUNDS = 20
STATES = "SELECT state, count(*) FROM inbox GROUP BY state"


@asynccontextmanager
async def server(home: Home) -> AsyncIterator[tuple[subprocess.Popen[bytes], str]]:
    """The API's process and its address; killed in the end."""
    process = started("api", "run", home=home.root, folder=home.root.parent)
    try:
        assert process.stdout is not None
        line = (await asyncio.to_thread(process.stdout.readline)).decode()
        yield process, line.split()[-1].removesuffix("/v1")
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)


async def say(url: str, words: list[str]) -> None:
    """Say all of that at once, each in a session of its own; returns when all of it was accepted."""
    headers = {"authorization": f"Bearer {KEY}"}
    async with (
        httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=60) as client,
        asyncio.TaskGroup() as group,
    ):
        said = [group.create_task(client.post("/v1/runs", json={"input": each})) for each in words]
    assert {each.result().status_code for each in said} == {202}


async def answered(home: Home, count: int, seconds: float) -> None:
    """Return when so many messages have their answer, and no other end."""
    store = await open_store(home.database)
    found: dict[str, int] = {}
    try:
        async with asyncio.timeout(seconds):
            while found != {Ending.ANSWERED: count}:
                await asyncio.sleep(0.05)
                found = dict(await store.read(lambda tx: tx.rows(STATES)))
    except TimeoutError:
        pytest.fail(f"after {seconds:.0f} s of {count} messages: {found}")
    finally:
        await store.close()


def home_at(folder: Path, url: str) -> Home:
    """A home whose server is the owner's, with a workspace that has a file to read."""
    folder.mkdir()
    home = settle_home(folder / "home", url, SETTINGS)
    home.env_file.write_text(f"API_SERVER_KEY={KEY}\n")
    home.env_file.chmod(0o600)
    (home.root / "workspace").mkdir()
    (home.root / "workspace" / "read.txt").write_text("what is read")
    return home


async def rounds(folder: Path, tool: str, size: int, many: int, *, kill: bool) -> list[float]:
    """The seconds that each round took, from the last acceptance to the last answer; after a kill from the restart."""
    async with serving(openai_model(one_call, keys=())) as model:
        home = home_at(folder, model.url)
        return [await a_round(home, tool, size, number, kill=kill) for number in range(many)]


async def a_round(home: Home, tool: str, size: int, number: int, *, kill: bool) -> float:
    async with server(home) as (process, url):
        await say(url, [f"{tool} r{number}s{each}" for each in range(size)])
        if not kill:
            return await timed(home, size * (number + 1))
        await asyncio.sleep(random.Random(number).uniform(0.0, 0.02 * size))
        process.kill()
    async with server(home):
        return await timed(home, size * (number + 1))


async def timed(home: Home, count: int) -> float:
    began = time.monotonic()
    await answered(home, count, 60 + count)
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("tool", CALLS)
async def test_sessions_that_act_at_once_in_one_server_are_all_answered(
    tmp_path: Path, tool: str, request: pytest.FixtureRequest
) -> None:
    full = request.config.getoption("--full", default=False)
    for size in SIZES if full else (8,):
        for kill in (False, True) if full else (True,):
            took = sorted(await rounds(tmp_path / f"{size}{kill}", tool, size, ROUNDS if full else 1, kill=kill))
            middle, ways = took[len(took) // 2], "killed" if kill else "whole"
            log.warning("%s, %d at once, %s: %.2f s in the middle, %.2f at most", tool, size, ways, middle, took[-1])
