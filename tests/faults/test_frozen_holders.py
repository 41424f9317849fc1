"""Somebody holds a lock and stands still: whoever waits says for whom, and a stop ends the wait within two seconds."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import settle_home
from tests.children import PATIENCE, said_by, started
from tests.host.test_lock_file import other_holder
from tests.journeys.test_many_at_once import UNASKED, one_call
from tests.store.sqlite.test_engine_frozen import frozen

STOP_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A lock, and a command line that needs it; `first` are those that make it so."""

    lock: str
    words: tuple[str, ...]
    first: tuple[tuple[str, ...], ...] = ()


def asks(tool: str) -> tuple[str, ...]:
    return ("-z", f"{tool} s1")


MADE = asks("skill_manage")
CASES = (
    Case(lock="locks/memories.lock", words=asks("memory")),
    Case(lock="hermes.db", words=("-z", "Hello s1"), first=(("-z", "Hello s0"),)),
    Case(lock="skills/.lock", words=asks("skill_manage")),
    Case(lock="skills/.state.lock", words=("skills", "pin", "made-s1"), first=(MADE,)),
    Case(lock="checkpoints/*/turn", words=asks("terminal"), first=(asks("terminal"),)),
    Case(lock="locks/config.lock", words=("config", "set", "agent.max_seconds", "5")),
    Case(lock="locks/env.lock", words=("config", "set", "OPENAI_API_KEY", "x")),
    Case(lock="locks/hermes.db.lock", words=("-z", "Hello s1")),
    Case(lock="locks/gateway-start.lock", words=("gateway", "start")),
    Case(lock="skills/.curator.lock", words=("curator", "pause")),
    Case(lock="skills/.hub/taps.lock", words=("skills", "tap", "remove", "t")),
)


def held_by_another(home: Home, lock: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """A process that has the lock and does nothing."""
    if lock == home.database.name:
        return frozen(home.database)
    return other_holder(next(home.root.glob(lock)) if "*" in lock else home.root / lock)


def line_of(child: subprocess.Popen[bytes], words: str) -> tuple[float, str]:
    """When it says a line with these words on standard error, and the line."""
    assert child.stderr is not None
    for line in child.stderr:
        if words in line.decode():
            return time.monotonic(), line.decode()
    raise AssertionError(f"It ended without a word of {words}")


def interrupted(case: Case, home: Home, number: signal.Signals) -> None:
    work = home.root.parent / "work"
    work.mkdir()
    (home.skills / ".hub").mkdir(parents=True)
    (home.skills / ".hub" / "taps.json").write_text('[{"name": "t", "url": "x"}]')
    for words in case.first:
        assert said_by(started(*words, home=home.root, folder=work)).code == 0
    with held_by_another(home, case.lock) as holder:
        child = started(*case.words, home=home.root, folder=work)
        began, line = line_of(child, "Waiting: ")
        assert f"locked by process {holder.pid} (" in line

        child.send_signal(number)
        _, err = child.communicate(timeout=PATIENCE)
        took = time.monotonic() - began

    assert took < STOP_SECONDS, took
    assert child.returncode != 0
    assert b"Traceback" not in err


def marked(case: Case) -> object:
    return pytest.param(case, id=case.lock, marks=() if case in CASES[:2] else pytest.mark.slow)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("case", [marked(case) for case in CASES])
async def test_whoever_waits_says_for_whom_and_ends_when_told_to(
    tmp_path: Path, case: Case, number: signal.Signals
) -> None:
    async with serving(openai_model(one_call, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url, UNASKED)
        await asyncio.to_thread(interrupted, case, home, number)


async def test_a_run_whose_log_another_program_blocks_ends_at_its_deadline_and_goes_on_later(tmp_path: Path) -> None:
    holders: list[AbstractContextManager[subprocess.Popen[bytes]]] = []

    def freezing(_: Heard) -> Say:
        if not holders:
            holders.append(frozen(home.database))
            holders[0].__enter__()
        return Say("Done.")

    async with serving(openai_model(freezing, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url, "agent:\n  max_seconds: 3\n")
        began = time.monotonic()
        said = await asyncio.to_thread(said_by, started("-z", "Go", home=home.root, folder=tmp_path))
        took = time.monotonic() - began
        holders[0].__exit__(None, None, None)
        later = await asyncio.to_thread(said_by, started("-c", "-z", "", home=home.root, folder=tmp_path))

    assert 3.0 < took < 3.0 + STOP_SECONDS + 2.0
    assert said.code == 1
    assert "The end of the run could not be written. The database " in said.err
    assert "lets it go on" in said.err
    assert (later.code, later.out) == (0, "Done.\n")
