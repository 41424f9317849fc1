"""Scheduled jobs while workers are killed at any moment: each is run once, none is lost, each result is one letter.

`--full`: 1,000 jobs, 4 workers, 100 kills, 40 seconds of outages.
"""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_agent.app.household import local_owner
from hermes_agent.app.settings import Settings
from hermes_agent.app.work.cron_drafts import Draft
from hermes_agent.app.work.cron_jobs import CronService
from hermes_agent.core.clock import SystemClock
from hermes_agent.host.config import load
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.store.database import Store, open_store
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.app.place import settle_home
from tests.cli.shell import PROGRAM, ROOT
from tests.measured import measured, path_of

MORE = """
cron:
  max_parallel: 100
gateway:
  channels:
    ntfy: {enabled: true, owners: [ann], home: news}
"""
PATIENCE = 240.0


class Workers:
    """Workers of a home, each a process that is killed and started again."""

    def __init__(self, home: Home, count: int) -> None:
        self._home, self._running = home, [self._start(home) for _ in range(count)]

    def _start(self, home: Home) -> subprocess.Popen[bytes]:
        variables = {"PYTHONPATH": path_of(ROOT / "src"), "HERMES_HOME": str(home.root), "PATH": "/usr/bin:/bin"}
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "worker"],
            env={**variables, **measured()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self, number: int) -> None:
        self._running[number].send_signal(signal.SIGKILL)
        self._running[number].wait()

    def start(self, number: int) -> None:
        self._running[number] = self._start(self._home)

    @property
    def count(self) -> int:
        return len(self._running)


@contextmanager
def workers(home: Home, count: int) -> Iterator[Workers]:
    made = Workers(home, count)
    try:
        yield made
    finally:
        for number in range(count):
            made.kill(number)


async def made(home: Home, store: Store, count: int, spread: int) -> None:
    """Half of the jobs ask a model, half run a script that counts itself."""
    settings = load(home, Settings).usable().value
    service = CronService(store=store, clock=SystemClock(), settings=settings, home=home)
    scripts = home.root / "scripts"
    scripts.mkdir()
    for number in range(count):
        name, schedule = f"job{number}", f"in {4 + number % spread}s"
        if number % 2:
            draft = Draft(name=name, schedule=schedule, prompt=f"number {number}", deliver="ntfy")
        else:
            script = scripts / f"{name}.sh"
            script.write_text(f"echo {name} >> counted; sleep 0.{number % 10}; echo done {number}")
            draft = Draft(name=name, schedule=schedule, script=script.name, agent=False, deliver="ntfy")
        await service.create(local_owner(), draft)


def answer(heard: Heard) -> Say:
    return Say(f"Heard {heard.last.text}.")


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_each_instant_is_run_once_while_workers_are_killed(tmp_path: Path, full: bool):
    count, kills, most, outages = (1000, 100, 4, 40.0) if full else (24, 6, 2, 1.5)
    with serving_in_thread(openai_model(answer, keys=())) as model:
        home = settle_home(tmp_path / "home", model.url, MORE)
        store = await open_store(home.database)
        await made(home, store, count, 60 if full else 8)
        with workers(home, most) as running:
            await storm(running, kills, outages)
            await ended(store, count)
        await check(home, store, count)
        await store.close()


async def storm(running: Workers, kills: int, outages: float) -> None:
    """Kill workers one by one, and four times all of them for a while."""
    chance = random.Random(7)
    for kill in range(kills):
        await asyncio.sleep(chance.uniform(0.3, 1.2))
        every = kill % max(1, kills // 4) == 1
        dying = range(running.count) if every else [chance.randrange(running.count)]
        for number in dying:
            running.kill(number)
        await asyncio.sleep(outages / 4 if every else 0.0)
        for number in dying:
            running.start(number)


async def ended(store: Store, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            row = await store.read(lambda tx: tx.row("SELECT count(*) FROM cron_instant WHERE ended IS NOT NULL"))
            if row is not None and row[0] == count:
                return
            await asyncio.sleep(0.2)


async def check(home: Home, store: Store, count: int) -> None:
    rows = await store.read(lambda tx: tx.rows("SELECT job, state, why, counts, words FROM cron_instant"))
    wrong = [row for row in rows if row[1:4] != ("ran", "", 1)]
    assert wrong == []
    assert len({row[0] for row in rows}) == count
    counted = Counter((home.root / "workspace" / "counted").read_text().split())
    assert counted == Counter(f"job{number}" for number in range(0, count, 2))
    letters = await store.read(lambda tx: tx.rows("SELECT key, state FROM outbox WHERE key LIKE 'cron:%'"))
    assert len(letters) == count
    sessions = await store.read(lambda tx: tx.row("SELECT count(*) FROM session WHERE surface = 'cron'"))
    assert sessions == (count // 2,)
