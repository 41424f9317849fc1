"""Bells between processes: short names, nobody home, already rung."""

import os
import tempfile
from pathlib import Path

import pytest

from hermes_agent.store.sqlite.bell import Bell, bell_folder, listen

WORKER = "0123456789ab"


@pytest.fixture
def folder() -> Path:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder) / "run"


@pytest.fixture
def bell(folder: Path):
    bell = Bell(folder)
    yield bell
    bell.close()


def heard(bell) -> bool:
    try:
        bell.recv(1)
    except BlockingIOError:
        return False
    return True


def test_one_worker_or_all_are_rung(folder: Path, bell: Bell):
    ears = [listen(folder, f"{number}{WORKER[1:]}") for number in range(2)]

    bell.ring([f"1{WORKER[1:]}"])
    assert [heard(ear) for ear in ears] == [False, True]
    bell.ring(["", "nobody"])
    assert [heard(ear) for ear in ears] == [True, True]

    for ear in ears:
        ear.close()


def test_ringing_where_nobody_is_is_no_error(bell: Bell):
    bell.ring(["", "nobody"])
    bell.ring(["nobody"])


def test_a_dead_workers_name_is_taken_away(folder: Path, bell: Bell):
    listen(folder, WORKER).close()

    bell.ring([""])

    assert list(folder.iterdir()) == []


def test_a_bell_that_was_rung_a_thousand_times_is_rung(folder: Path, bell: Bell):
    ear = listen(folder, WORKER)

    for _ in range(2000):
        bell.ring([WORKER])

    assert heard(ear)
    ear.close()


def test_a_long_home_gets_a_short_name():
    short, long = Path("/home/ann/.hermes"), Path("/home") / ("x" * 200)

    assert bell_folder(short) == short / "run"
    assert str(bell_folder(long)).startswith("/tmp/hermes-"), "a process with another TMPDIR must meet the same sockets"
    assert bell_folder(long) == bell_folder(long) != bell_folder(long / "y")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_is_not_trusted(folder: Path):
    folder.mkdir()
    os.chown(folder, 65534, 65534)

    with pytest.raises(PermissionError):
        listen(folder, WORKER)


def test_what_cannot_be_rung_keeps_nobody_else_from_being_woken(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "0.sock").mkdir()
    (tmp_path / f"{'1' * 120}.sock").touch()
    socket = listen(tmp_path, "2")
    bell = Bell(tmp_path)

    bell.ring([""])

    assert socket.recv(1) == b""
    assert "cannot be woken" in caplog.text
    bell.close()
    socket.close()


def test_a_folder_that_cannot_be_read_wakes_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "run").touch()

    Bell(tmp_path / "run").ring([""])

    assert "nobody can be woken" in caplog.text
