"""Scheduled jobs of a real process whose clock runs fast over the nights in which Berlin's clocks change.

`--full`, with the library of faketime (Debian: `apt-get install faketime`): three hours in three minutes each.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hermes_agent.app.household import local_owner
from hermes_agent.app.settings import Settings
from hermes_agent.app.work.cron_drafts import Draft
from hermes_agent.app.work.cron_jobs import CronService
from hermes_agent.host.config import load
from hermes_agent.store.database import Store, open_store
from hermes_agent.testing.clock import FakeClock
from tests.app.place import settle_home
from tests.cli.shell import PROGRAM, ROOT
from tests.measured import path_of

LIBRARY = Path(os.environ.get("LIBFAKETIME", "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"))
HAS_LIBRARY = LIBRARY.exists()
BERLIN = ZoneInfo("Europe/Berlin")
RATE = 60
LINES = {"fixed": "30 2 * * *", "two": "0 2-3 * * *", "star": "*/30 * * * *", "every": "every 45m"}


async def schedules(root: Path, begin: datetime) -> Store:
    """A home with a job of each kind, made a moment before the night."""
    home = settle_home(root, "http://127.0.0.1:9", "cron:\n  timezone: Europe/Berlin\n")
    (home.root / "scripts").mkdir()
    (home.root / "scripts" / "say.sh").write_text("echo hi")
    store = await open_store(home.database, clock=FakeClock(now=begin.timestamp() - 1))
    settings = load(home, Settings).usable().value
    service = CronService(store=store, clock=store.clock, settings=settings, home=home)
    for name, schedule in LINES.items():
        draft = Draft(name=name, schedule=schedule, script="say.sh", agent=False, deliver="local")
        await service.create(local_owner(), draft)
    return store


async def dues(store: Store) -> dict[str, list[str]]:
    """When each job ran, on the clock of Berlin."""
    rows = await store.read(
        lambda tx: tx.rows(
            "SELECT cron_job.name, due FROM cron_instant JOIN cron_job ON cron_job.id = job WHERE "
            "cron_instant.state = 'ran' ORDER BY due"
        )
    )
    found: dict[str, list[str]] = {name: [] for name in LINES}
    for name, due in rows:
        found[name].append(f"{datetime.fromtimestamp(due, BERLIN):%H:%M %Z}")
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("begin", "fixed", "two", "star"),
    [
        ("2026-10-24T23:50", ["02:30 CEST"], ["02:00 CEST", "03:00 CET"], 6),
        ("2027-03-27T23:50", ["03:00 CEST"], ["03:00 CEST"], 6),
    ],
)
async def test_a_real_process_runs_each_time_of_the_night_once(
    tmp_path: Path, full: bool, begin: str, fixed: list[str], two: list[str], star: int
):
    if not full or not HAS_LIBRARY:
        pytest.skip("for minutes, and with the library of faketime: --full")
    start = datetime.fromisoformat(begin).replace(tzinfo=UTC)
    store = await schedules(tmp_path / "home", start)
    with fast_worker(tmp_path / "home", start):
        await asyncio.sleep(3 * 3600 / RATE + 5)
    found = await dues(store)
    await store.close()
    assert found["fixed"] == fixed
    assert found["two"] == two
    assert len(found["star"]) >= star
    assert len(set(found["star"])) == len(found["star"])
    assert found["every"]


@contextmanager
def fast_worker(home: Path, start: datetime) -> Iterator[None]:
    """A worker whose clock begins then, and runs fast."""
    variables = {
        "PYTHONPATH": path_of(ROOT / "src"),
        "HERMES_HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME": f"@{start:%Y-%m-%d %H:%M:%S} x{RATE}",
        "TZ": "UTC",
    }
    worker = subprocess.Popen([sys.executable, "-c", PROGRAM, "worker"], env=variables, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait()
