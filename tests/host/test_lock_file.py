"""Lock files: what is said of who holds one, and of what cannot be one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_agent.core.activity import Activity, activity
from hermes_agent.core.errors import HomeError
from hermes_agent.host.locks import LockFile, holder_of, kernel_holder, locked, named
from hermes_agent.host.process_table import row_of
from tests.children import unprivileged

GONE = 1 << 22  # no process has this number: the kernel's are below it


@contextmanager
def other_holder(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another program that holds the lock, and is none of ours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    words = ["flock", path.name, "sh", "-c", "echo held; exec sleep 99"]
    with subprocess.Popen(words, cwd=path.parent, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()  # until the last of the two is gone


def note(path: Path, pid: int, started: int) -> None:
    path.write_text(json.dumps({"pid": pid, "started": started, "since": time.monotonic(), "name": "session s1"}))


def test_the_holder_writes_down_what_it_works_on(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    token = activity.set(Activity(name="session s1"))
    with locked(path):
        assert str(holder_of(path)) == "this process, session s1, for 0 s"
    activity.reset(token)

    assert holder_of(path) is None
    assert path.read_bytes() == b""


def test_a_program_that_is_none_of_ours_is_named_by_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with other_holder(path) as process:
        assert str(holder_of(path)) == f"process {process.pid} (flock {path.name} sh -c)"

        process.send_signal(signal.SIGSTOP)
        while (row := row_of(process.pid)) is None or row.state != "T":
            pass
        assert f"stopped: `kill -CONT {process.pid}` lets it go on" in str(holder_of(path))


def test_what_somebody_typed_is_not_shown(tmp_path: Path) -> None:
    words = ["sh", "-c", "sleep 99; true", "TOKEN=x"]
    with subprocess.Popen(words, start_new_session=True) as process:
        while "sh -c … …" not in named(process.pid):
            pass
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("started", [1, 0])
def test_a_note_of_the_dead_is_not_believed(tmp_path: Path, started: int) -> None:
    """Its number is that of another process now, or of none."""
    path = tmp_path / "a.lock"
    note(path, os.getpid() if started else GONE, started)
    assert holder_of(path) is None

    with other_holder(path) as process:
        found = holder_of(path)
        assert found is not None
        assert (found.who.pid, found.name) == (process.pid, "")


def test_a_note_of_a_process_that_lives_and_let_go_is_not_believed_where_the_kernel_knows_better(tmp_path: Path):
    path = tmp_path / "a.lock"
    row = row_of(os.getpid())
    assert row is not None
    note(path, row.pid, row.started)

    with other_holder(path) as process:
        assert f"process {process.pid}" in str(holder_of(path))


def test_a_lock_that_outlives_its_process_in_a_child_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with other_holder(path) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert "which has ended, or a program that it started" in str(holder_of(path))


def test_a_lock_on_another_byte_is_another_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with other_holder(path) as process:
        assert kernel_holder(path.stat(), "FLOCK") == process.pid
        assert kernel_holder(path.stat(), "POSIX", 120) == 0
        assert kernel_holder(Path(__file__).stat(), "FLOCK") == 0


def test_who_waits_without_an_event_loop_is_told_after_two_seconds_and_may_give_up(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    said: list[str] = []
    token = activity.set(Activity(notify=said.append))
    with other_holder(path) as process:
        began = time.monotonic()
        with pytest.raises(HomeError, match=f"a.lock is locked by process {process.pid} "), locked(path, 2.3):
            pass
        assert 2.3 <= time.monotonic() - began < 4
    activity.reset(token)

    assert said == [f"Waiting: {path} is locked by process {process.pid} (flock {path.name} sh -c)."]


def make_folder(path: Path) -> None:
    path.mkdir()


def make_link(path: Path) -> None:
    path.symlink_to(path.with_name("elsewhere"))
    path.with_name("elsewhere").write_text("mine")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            make_folder,
            "cannot be locked (Is a directory): a folder or a link stands where a file must be; move it away.",
        ),
        (
            make_link,
            "cannot be locked (Too many levels of symbolic links): a folder or a link stands where a file must be; "
            "move it away.",
        ),
        (os.mkfifo, "cannot be locked: it is a device or pipe, not a file. Move it out of the way."),
    ],
)
def test_what_is_no_file_cannot_be_locked(tmp_path: Path, make, words: str) -> None:
    path = tmp_path / "a.lock"
    make(path)

    with pytest.raises(HomeError) as error:
        LockFile(path)
    assert str(error.value) == f"{path} {words}"
    assert not path.with_name("elsewhere").exists() or path.with_name("elsewhere").read_text() == "mine"


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "locks").touch()

    with pytest.raises(HomeError, match="a file stands where a folder must be"):
        LockFile(tmp_path / "locks" / "a.lock")


TRY = """
import pathlib, sys
from hermes_agent.core.errors import HomeError
from hermes_agent.host.locks import locked
try:
    with locked(pathlib.Path(sys.argv[1])):
        print("held")
except HomeError as error:
    print(error)
"""


JUMPING = """
import itertools, time
years = itertools.cycle((1e9, 3e9, 0.0))
time.time = lambda: next(years)
"""


def tried(path: Path, *before: str, program: str = TRY) -> str:
    """What a process of its own says of locking that."""
    words = [*before, sys.executable, "-c", program, str(path)]
    return subprocess.run(words, env={**os.environ, "PYTHONPATH": "src"}, capture_output=True, text=True).stdout.strip()


def test_a_clock_that_jumps_while_somebody_waits_neither_ends_the_wait_nor_makes_it_longer(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with other_holder(path) as process:
        began = time.monotonic()
        said = tried(path, program=JUMPING + TRY.replace("(sys.argv[1])", "(sys.argv[1]), 0.7"))

        assert said == f"{path} is locked by process {process.pid} (flock {path.name} sh -c)."
        assert 0.7 < time.monotonic() - began < 15


def test_a_lock_without_rights_is_told(tmp_path: Path) -> None:
    before = unprivileged()
    if before is None:
        pytest.skip("root may everything here, and there is no setpriv")
    path = tmp_path / "a.lock"
    path.touch()
    path.chmod(0o400)

    assert tried(path, *before) == (
        f"{path} cannot be locked (Permission denied): make it yours (`chown -R $USER {tmp_path}`) "
        "or set HERMES_HOME to a folder of yours."
    )


def test_a_full_disk_keeps_nobody_from_locking_a_file_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    path.touch()

    assert tried(path, "sh", "-c", 'ulimit -f 0; trap "" XFSZ; exec "$@"', "sh") == "held"
