"""What may happen to the files of a database while nobody works with it, and what the next start says and keeps."""
# ruff: noqa: ASYNC240  (a test waits for its own files)

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from hermes_agent.core.errors import DatabaseDamaged, DatabaseUnreachable
from hermes_agent.store.database import open_store
from hermes_agent.store.search import EVERYBODY
from hermes_agent.store.sqlite.opening import discard

ROOT = Path(__file__).parents[3]
WRITER = Path(__file__).with_name("log_writer.py")
FEW, MANY = 30, 600
"""Entries that fit into one `-wal`, and those that make it begin anew several times."""


def writes(path: Path, name: str, last: int, *more: str) -> subprocess.Popen[str]:
    environment = {"PATH": os.defpath, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(WRITER), str(path), name, "1", str(last), *more]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def ended(path: Path, name: str, last: int = FEW) -> None:
    """A process that says so much, and ends."""
    child = writes(path, name, last, "end")
    child.communicate()
    assert child.returncode == 0


def killed(path: Path, name: str, last: int = FEW) -> None:
    """A process that says so much, and is killed."""
    child = writes(path, name, last)
    assert child.stdout
    assert child.stdout.readline() == "written\n"
    child.kill()
    child.communicate()
    assert path.with_name("hermes.db-wal").stat().st_size


@dataclass(frozen=True)
class Found:
    """What the next start finds: how many entries each session has, and what it tells."""

    sessions: dict[str, int]
    notice: str


async def start(path: Path) -> Found:
    store = await open_store(path)
    try:
        check = await store.read(lambda tx: tx.row("PRAGMA integrity_check"))
        mode = await store.read(lambda tx: tx.row("PRAGMA journal_mode"))
        rows = await store.read(lambda tx: tx.rows("SELECT session, count(*) FROM entry GROUP BY session"))
        sessions = {name: count for name, count in rows}  # noqa: C416  rows are tuples of any length
        for name in ("apple", "zebra", "quartz"):
            hits = await store.search.search(f"{name}first", EVERYBODY)
            assert {(hit.session, hit.number) for hit in hits} == ({(name, 1)} if name in sessions else set())
        assert (check, mode) == (("ok",), ("wal",))
        return Found(sessions=sessions, notice=store.notice)
    finally:
        await store.close()


def passes(seconds: float) -> None:
    """Time passes: file systems count it in steps."""
    threading.Event().wait(seconds)


def taken_back(path: Path, into: Path, *suffixes: str) -> None:
    """Copy files of this database somewhere else, in the order of the suffixes."""
    into.mkdir(exist_ok=True)
    for suffix in suffixes:
        shutil.copy(f"{path}{suffix}", into / f"{path.name}{suffix}")
        passes(0.02)


THREE = ("", "-shm", "-wal")


@dataclass(frozen=True)
class Case:
    """`done` is what happens, given the database and a folder; `left` what is found then, `notice` words of what is
    told (empty: nothing is), `kept` whether something was set aside."""

    done: Callable[[Path, Path], object]
    left: dict[str, int]
    notice: str = ""
    kept: bool = False


def nothing(path: Path, _: Path) -> None:
    ended(path, "apple")
    killed(path, "zebra")


def moved_away(path: Path, other: Path) -> None:
    nothing(path, other)
    path.rename(other / "old.db")


def moved_away_after_an_end(path: Path, other: Path) -> None:
    ended(path, "apple")
    path.rename(other / "old.db")


def backup_over(copy: Callable[[Path, Path], object], entries: int) -> Callable[[Path, Path], None]:
    def done(path: Path, other: Path) -> None:
        ended(path, "apple")
        shutil.copy2(path, other / "backup.db")
        killed(path, "zebra", entries)
        copy(other / "backup.db", path)

    return done


def another_over(path: Path, other: Path) -> None:
    """A backup of two runs ago, made by SQLite's own way."""
    ended(path, "apple")
    with closing(apsw.Connection(str(path))) as database:
        database.execute("VACUUM INTO ?", (str(other / "backup.db"),))
    ended(path, "zebra", MANY)
    killed(path, "quartz")
    shutil.copy(other / "backup.db", path)


def in_delete_mode(path: Path, other: Path) -> None:
    ended(path, "apple")
    with closing(apsw.Connection(str(path))) as database:
        database.pragma("journal_mode", "delete")


def all_three(path: Path, other: Path) -> None:
    nothing(path, other)
    taken_back(path, other / "saved", *THREE)
    discard(path)
    taken_back(other / "saved" / path.name, path.parent, *THREE)


def all_three_over(path: Path, other: Path) -> None:
    nothing(path, other)
    taken_back(path, other / "saved", *THREE)
    path.write_bytes(b"something else")
    taken_back(other / "saved" / path.name, path.parent, *THREE)


def home_elsewhere(path: Path, other: Path) -> None:
    """The home is copied file by file, the database last, and stands in the old one's place."""
    nothing(path, other)
    taken_back(path, other / "copy", "-wal", "-shm", "")
    shutil.copytree(path.parent / "locks", other / "copy" / "locks")
    shutil.rmtree(path.parent)
    (other / "copy").rename(path.parent)


def rights_changed(path: Path, other: Path) -> None:
    nothing(path, other)
    passes(0.02)
    path.chmod(0o640)


def index_gone(path: Path, other: Path) -> None:
    ended(path, "apple")
    ended(path, "look")
    path.with_name("index.db").unlink()


def index_overwritten(content: bytes) -> Callable[[Path, Path], None]:
    def done(path: Path, other: Path) -> None:
        ended(path, "apple")
        ended(path, "look")
        ended(path, "zebra")
        path.with_name("index.db").write_bytes(content)

    return done


def index_of_before(path: Path, other: Path) -> None:
    ended(path, "apple")
    ended(path, "look")
    shutil.copy(path.with_name("index.db"), other / "index.db")
    ended(path, "zebra", MANY)
    child = writes(path, "look", FEW)
    assert child.stdout
    child.stdout.readline()
    child.kill()
    child.communicate()
    shutil.copy(other / "index.db", path.with_name("index.db"))


def index_of_another_log(path: Path, other: Path) -> None:
    """The log is one of before, and has grown past what the index has read of the other."""
    ended(path, "apple")
    shutil.copy(path, other / "backup.db")
    ended(path, "zebra", FEW)
    ended(path, "look")
    shutil.copy(other / "backup.db", path)
    ended(path, "quartz", 2 * FEW)


BOTH = {"apple": FEW, "zebra": FEW}
APPLE = {"apple": FEW}
CASES = {
    "only killed": Case(nothing, BOTH),
    "moved away": Case(moved_away, {}, "without the sessions of before", kept=True),
    "moved away after an end": Case(moved_away_after_an_end, {}, "without the sessions of before"),
    "cp backup": Case(backup_over(shutil.copyfile, FEW), APPLE, "was replaced", kept=True),
    "cp backup, much written": Case(backup_over(shutil.copyfile, MANY), APPLE, "was replaced", kept=True),
    "cp -p backup, much written": Case(backup_over(shutil.copy2, MANY), APPLE, "was replaced", kept=True),
    "cp -p of the very file that is there": Case(backup_over(shutil.copy2, FEW), BOTH),
    "mv backup": Case(backup_over(os.replace, MANY), APPLE, "was replaced", kept=True),
    "cp backup of two runs ago": Case(another_over, APPLE, "was replaced", kept=True),
    "a backup that is in delete mode": Case(in_delete_mode, APPLE),
    "cp of the three files": Case(all_three, BOTH),
    "cp over the three files": Case(all_three_over, BOTH),
    "the home elsewhere": Case(home_elsewhere, BOTH),
    "chmod": Case(rights_changed, BOTH),
    "index moved away": Case(index_gone, APPLE),
    "index of 0 bytes": Case(index_overwritten(b""), BOTH),
    "index of garbage": Case(index_overwritten(b"no database" * 5000), BOTH),
    "index of before": Case(index_of_before, {"apple": FEW, "zebra": MANY}),
    "index of another log": Case(index_of_another_log, {"apple": FEW, "quartz": 2 * FEW}),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "other").mkdir()
    return tmp_path / "home" / "hermes.db"


@pytest.mark.parametrize("name", CASES)
async def test_the_next_start_never_mixes_two_databases_and_says_what_is_gone(path: Path, name: str):
    case = CASES[name]
    case.done(path, path.parents[1] / "other")

    found = await start(path)

    assert found.sessions == case.left
    assert case.notice in found.notice
    assert bool(found.notice) == bool(case.notice)
    assert path.with_name("hermes.db.left-1-wal").exists() == case.kept
    assert ("hermes.db.left-1-wal" in found.notice) == case.kept
    assert (await start(path)).notice == ""


async def test_what_was_set_aside_is_there_again_where_the_old_file_is_put_back_with_it(path: Path):
    moved_away(path, other := path.parents[1] / "other")
    await start(path)

    path.unlink()
    shutil.copy(other / "old.db", path)
    shutil.copy(path.with_name("hermes.db.left-1-wal"), path.with_name("hermes.db-wal"))

    assert (await start(path)).sessions == BOTH


@pytest.mark.parametrize("how", [ended, killed])
async def test_an_emptied_database_is_told_and_not_replaced(path: Path, how: Callable[[Path, str], None]):
    how(path, "apple")
    beside = path.with_name("hermes.db-wal").exists()
    os.truncate(path, 0)

    for _ in range(2):
        with pytest.raises(DatabaseDamaged, match="is empty"):
            await open_store(path)

    assert path.stat().st_size == 0
    assert path.with_name("hermes.db-wal").exists() == beside
    path.unlink()
    assert "without the sessions of before" in (await start(path)).notice


async def test_a_database_that_another_process_works_with_is_not_made_anew(path: Path):
    child = writes(path, "apple", FEW)
    assert child.stdout
    assert child.stdout.readline() == "written\n"
    path.rename(path.with_name("away.db"))

    with pytest.raises(DatabaseUnreachable, match="another process works with it"):
        await open_store(path)

    assert not path.exists()
    path.with_name("away.db").rename(path)
    child.kill()
    child.communicate()
    assert (await start(path)).sessions == APPLE


@pytest.mark.timeout(300)
async def test_a_kill_at_any_moment_sets_nothing_aside(path: Path, loop_seconds: float):
    until, runs, chance = time.monotonic() + loop_seconds, 0, random.Random(1)
    while time.monotonic() < until:
        child = writes(path, f"s{runs}", 100_000)
        passes(chance.uniform(0.5, 1.5))  # It is somewhere in the middle of its work.
        child.send_signal(signal.SIGKILL)
        child.communicate()
        runs += 1

        assert (await start(path)).notice == ""
