"""The modes in which threads are few and locks are held long: they take effect, and journeys end in them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.measured import NARROW

ROOT = Path(__file__).parents[2]
JOURNEYS = (
    "tests/journeys/test_many_at_once.py",
    "tests/journeys/test_budgets.py",
    "tests/runs/test_front.py",
    "tests/api/test_runs.py",
    "tests/tools/files/test_tools.py",
)
SOME = (
    "test_sessions_that_act_at_once_are_all_answered_with_one_thread and (terminal or memory)",
    "test_sessions_of_one_job_share_its_limit",
    "test_two_processes_on_one_session_have_one_run_at_a_time",
    "test_a_run_is_followed_and_stopped_from_another_process",
    "test_a_run_that_is_stopped_before_it_began_does_nothing",
    "test_events_come_live_and_again_from_a_number_on",
    "test_contents_are_searched_with_places_to_read_on",
)
"""Of these the plain check runs some: those in which most threads and locks are taken."""
ASK = """
import asyncio, pathlib, sys, time
from hermes_agent.host.locks import held
from hermes_agent.host.locks import locked
async def ask():
    began = time.monotonic()
    async with held(pathlib.Path(sys.argv[1])):
        pass
    with locked(pathlib.Path(sys.argv[1])):
        pass
    took = time.monotonic() - began
    await asyncio.to_thread(int)
    print(asyncio.get_running_loop()._default_executor._max_workers, took >= 0.4)
asyncio.run(ask())
"""


def said(tmp_path: Path, **scarce: str) -> str:
    path = os.pathsep.join(map(str, (NARROW, ROOT / "src")))
    words = [sys.executable, "-c", ASK, str(tmp_path / "a.lock")]
    return subprocess.run(words, env={"PYTHONPATH": path, **scarce}, capture_output=True, text=True, check=True).stdout


def test_a_child_has_few_threads_and_slow_locks_where_it_is_told_to(tmp_path: Path) -> None:
    assert said(tmp_path, TESTED_POOL="1", TESTED_LOCK_SECONDS="0.2") == "1 True\n"
    assert said(tmp_path).endswith(" False\n")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [("--pool", "1"), ("--lock-seconds", "0.5")], ids=["one thread", "slow locks"])
def test_journeys_end_where_threads_are_few_or_locks_are_held_long(mode: tuple[str, str], full: bool) -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mode, *JOURNEYS]
    words += [] if full else ["-k", " or ".join(SOME)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
