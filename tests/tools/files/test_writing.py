"""A file is replaced whole or not at all, and only over the version that was read."""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_agent.core.errors import StaleWrite, ToolError
from hermes_agent.tools.files.writing import ABSENT, Writer, version_of


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "a.txt"
    made.write_text("old")
    return made


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name != "a.txt"]


def test_the_content_is_replaced_and_the_mode_kept(file: Path) -> None:
    file.chmod(0o750)

    Writer().swap(file, "a.txt", b"new", over=version_of(file, "a.txt"))

    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o750
    assert leftovers(file.parent) == []


def test_a_new_file_gets_its_folders(tmp_path: Path) -> None:
    Writer().swap(tmp_path / "x" / "y" / "b.txt", "b.txt", b"new", over=ABSENT)

    assert (tmp_path / "x" / "y" / "b.txt").read_bytes() == b"new"


def test_a_file_that_changed_meanwhile_is_left_alone(file: Path) -> None:
    seen = version_of(file, "a.txt")
    file.write_text("somebody else's")

    with pytest.raises(StaleWrite):
        Writer().swap(file, "a.txt", b"new", over=seen)

    assert file.read_text() == "somebody else's"
    assert leftovers(file.parent) == []


def test_a_file_that_appeared_meanwhile_is_left_alone(file: Path) -> None:
    with pytest.raises(StaleWrite):
        Writer().swap(file, "a.txt", b"new", over=ABSENT)

    assert file.read_text() == "old"


def test_of_two_writers_of_one_version_one_is_told(file: Path) -> None:
    writer, seen, outcomes = Writer(), version_of(file, "a.txt"), []
    start = threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        try:
            writer.swap(file, "a.txt", f"writer {number}".encode(), over=seen)
            outcomes.append(number)
        except StaleWrite:
            outcomes.append(-1)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    (winner,) = [number for number in outcomes if number >= 0]
    assert file.read_text() == f"writer {winner}"


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_write_that_breaks_off_leaves_the_old_content(file: Path) -> None:
    seen = version_of(file, "a.txt")

    with largest_file(1000), pytest.raises(ToolError, match="cannot be written"):
        Writer().swap(file, "a.txt", b"x" * 5000, over=seen)

    assert file.read_text() == "old"
    assert leftovers(file.parent) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any file")
def test_a_read_only_file_stays_so(file: Path) -> None:
    file.chmod(0o444)

    with pytest.raises(ToolError, match="read-only"):
        Writer().swap(file, "a.txt", b"new", over=version_of(file, "a.txt"))


def test_no_file_is_a_version_too(tmp_path: Path) -> None:
    assert version_of(tmp_path / "nope", "nope") == ABSENT
    assert ABSENT.digest == ""


def test_a_file_too_large_to_change_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as made:
        made.truncate(65 << 20)

    with pytest.raises(ToolError, match="too many"):
        version_of(tmp_path / "big", "big")
