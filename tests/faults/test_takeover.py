"""Commands of sessions that go from home to home while processes are killed: each begins once, or is told as unknown.

`--full`: 500 messages and 30 kills.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest

from hermes_agent.app.serving.settings import SERVED
from hermes_agent.core.events import ToolEnded
from hermes_agent.core.inbound import Conversation, Inbound, Principal, Standing
from hermes_agent.core.messages import Origin, Role, Text
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.sessions import Session
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from hermes_agent.testing.postgres import PostgresCluster
from tests.cli.shell import PROGRAM, ROOT

OWNER = Principal(platform="cli", user="me", standing=Standing.OWNER)
UNKNOWN = "Whether it ran is unknown"
SETTINGS = """\
model:
  default: custom/m
  base_url: {model}
store:
  url: '{database}'
  shared: true
approvals:
  mode: 'off'
checkpoints:
  enabled: false
"""
PATIENCE = 180.0


def counting(heard: Heard) -> Call | Say:
    """Count the message's number with a command, and say what the command said."""
    if heard.last.role is Role.TOOL:
        return Say(f"It said: {heard.last.parts[0].text}")
    number = heard.last.text
    command = f"echo {number} >> counted; sleep 1.{number[-1]}; echo done {number}"
    return Call("terminal", {"command": command}, id=number)


class Homes:
    """Two homes with a worker each, on one database. A worker that is killed is begun anew."""

    def __init__(self, folder: Path, database: str, model: str) -> None:
        self._folder = folder
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("north", "south"):
            (folder / name).mkdir()
            (folder / name / "config.yaml").write_text(SETTINGS.format(model=model, database=database))
            self._begin(name)

    def _begin(self, name: str) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src"),
            "HERMES_HOME": str(self._folder / name),
            "CUSTOM_API_KEY": "k",
        }
        with (self._folder / f"{name}.out").open("ab") as out:
            self._workers[name] = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, "worker"], env=environment, stdout=out, stderr=out
            )

    def kill(self, name: str) -> None:
        """`kill -9`; the other home has its work before it is back."""
        self.end(name)
        self._begin(name)

    def end(self, name: str) -> None:
        self._workers[name].send_signal(signal.SIGKILL)
        self._workers[name].wait()

    def __enter__(self) -> Homes:
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._workers:
            self.end(name)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = await open_store(url)
    yield store
    await store.close()


async def say(store: Store, number: int, workspace: Path) -> str:
    """A message in a conversation of its own."""
    at = 1.0 * number
    session, chat = f"20260101_000000_{number:06d}", Conversation(platform="api", chat=f"c{number}")
    record = Session(
        id=session,
        principal=OWNER.key,
        conversation=chat.key,
        surface="api",
        workspace=str(workspace),
        created=at,
        updated=at,
    )
    inbound = Inbound(
        source="test",
        source_id=f"m{number}",
        principal=OWNER,
        conversation=chat,
        parts=(Text(text=f"m{number}", origin=Origin.OWNER),),
        received=at,
    )

    async def change(tx):
        await store.sessions.create(tx, record)
        await store.sessions.set_current(tx, chat.key, session)
        await store.inbox.accept(inbound, session, SERVED, tx=tx)

    await store.write(change)
    return session


async def ended(store: Store, messages: int) -> None:
    """Return when every message has ended."""
    open_ = "SELECT count(*) FROM inbox WHERE ended IS NULL"
    until = monotonic() + PATIENCE
    while left := (await store.read(lambda tx: tx.rows(open_)))[0][0]:
        assert monotonic() < until, f"{left} of {messages} never ended"
        await asyncio.sleep(0.1)


def size_of(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


async def grown(file: Path) -> None:
    """Return when a command has begun."""
    before = size_of(file)
    while size_of(file) == before:
        await asyncio.sleep(0.05)


async def told(store: Store, session: str) -> list[str]:
    entries = await store.history.entries(session)
    return [
        part.parts[0].text
        for entry in entries
        if isinstance(entry.event, ToolEnded)
        for part in entry.event.message.parts
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_command_begins_once_or_is_told_as_unknown(tmp_path: Path, cluster: PostgresCluster, full: bool):
    messages, kills = (500, 30) if full else (40, 8)
    chance, url = random.Random(13), cluster.fresh_url()
    work = tmp_path / "work"
    work.mkdir()
    async with AsyncExitStack() as closing:
        model = closing.enter_context(serving_in_thread(openai_model(counting, keys=())))
        homes = closing.enter_context(Homes(tmp_path, url, model.url))
        store = await closing.enter_async_context(opened(url))
        sessions = {}
        for number in range(messages):
            sessions[f"m{number}"] = await say(store, number, work)
            if number % (messages // kills) == messages // kills - 1:
                await grown(work / "counted")
                await asyncio.sleep(chance.uniform(0.0, 0.5))  # What has begun is not over yet.
                homes.kill(chance.choice(("north", "south")))
        await ended(store, messages)
        said = {number: await told(store, session) for number, session in sessions.items()}
    counted = Counter((work / "counted").read_text().split())
    unknown = [number for number, words in said.items() if any(UNKNOWN in each for each in words)]
    print(f"{messages} messages, {kills} kills: {sum(counted.values())} begun, {len(unknown)} told as unknown")

    assert [number for number, times in counted.items() if times > 1] == []
    assert [number for number in sessions if not counted[number] and number not in unknown] == []
    assert unknown, "no kill left a command to the other home"
