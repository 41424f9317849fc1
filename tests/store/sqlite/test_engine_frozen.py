"""A process that stands still inside a transaction: it is named, and nobody who leaves waits for it."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_agent.core.activity import Activity, activity
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.workers import Timings
from tests.store.made import add, session
from tests.store.sqlite.test_engine import nothing, outcome


@pytest.fixture
async def store(tmp_path: Path):
    store = await open_store(tmp_path / "hermes.db", timings=Timings(busy=0.2))
    yield store
    await store.close()


FREEZE = """
import os, signal, sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN IMMEDIATE")
print("held", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@contextmanager
def frozen(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands still while it has the database locked."""
    words = [sys.executable, "-c", FREEZE, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            process.kill()


async def test_a_process_that_stands_still_in_a_transaction_is_named(store: Store, tmp_path: Path):
    told: list[str] = []
    with frozen(tmp_path / "hermes.db") as process:
        failed = await outcome(store, nothing)
        assert f"stayed locked by process {process.pid} (" in str(failed)
        assert f"stopped: `kill -CONT {process.pid}` lets it go on" in str(failed)

        patient = await open_store(tmp_path / "hermes.db")
        activity.set(Activity(notify=told.append))
        waiting = asyncio.create_task(patient.write(nothing))
        await asyncio.wait((waiting,), timeout=2.5)
        assert f"locked by process {process.pid} (" in patient.engine.blocked
        assert told == [f"Waiting: {patient.engine.blocked}"]

        process.send_signal(signal.SIGCONT)  # It ends, and its transaction with it.
        await waiting
        assert patient.engine.blocked == ""
    await patient.close()


@pytest.mark.parametrize("end", ["hurry", "cancel", "close"])
async def test_nobody_who_leaves_waits_for_another_program(tmp_path: Path, end: str):
    store = await open_store(tmp_path / "hermes.db")
    with frozen(tmp_path / "hermes.db"):
        waiting = asyncio.create_task(outcome(store, nothing))
        await asyncio.sleep(0.05)
        async with asyncio.timeout(1.0):
            if end == "hurry":
                store.engine.hurry()
                assert "stayed locked by" in str(await waiting)
            elif end == "cancel":
                waiting.cancel()
            await store.close()
    await asyncio.wait((waiting,))


async def test_a_change_that_was_given_up_while_another_program_kept_it_waiting_is_not_done(tmp_path: Path):
    store = await open_store(tmp_path / "hermes.db")
    await add(store, session())
    with frozen(tmp_path / "hermes.db"):
        waiting = asyncio.create_task(store.write(lambda tx: tx.run("UPDATE session SET title = 'late'")))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.sleep(0.3)
    await store.write(nothing)

    record = await store.sessions.get("s1")
    assert record is not None
    assert record.title == ""
    await store.close()
