"""A file is replaced whole or not at all, and only over the version that was read."""

from __future__ import annotations

import ctypes
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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


def give_up_capabilities() -> None:
    """Of this thread alone: file modes hold for it, also where root runs the tests."""
    version_3, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(version_3, nothing) == 0


def without_capabilities(do: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1, initializer=give_up_capabilities) as thread:
        thread.submit(do).result()


def test_a_read_only_file_stays_so(file: Path) -> None:
    seen = version_of(file, "a.txt")
    file.chmod(0o444)

    with pytest.raises(ToolError, match=r"a\.txt is read-only"):
        without_capabilities(lambda: Writer().swap(file, "a.txt", b"new", over=seen))

    assert file.read_text() == "old"
    assert leftovers(file.parent) == []


def test_a_file_is_removed(file: Path) -> None:
    Writer().remove(file, "a.txt", over=version_of(file, "a.txt"))

    assert not file.exists()


def test_removing_what_is_not_there_changes_nothing(tmp_path: Path) -> None:
    Writer().remove(tmp_path / "nope", "nope", over=ABSENT)

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_changed_meanwhile_is_not_removed(file: Path) -> None:
    seen = version_of(file, "a.txt")
    file.write_text("somebody else's")

    with pytest.raises(StaleWrite):
        Writer().remove(file, "a.txt", over=seen)

    assert file.read_text() == "somebody else's"


def test_a_file_whose_folder_is_closed_is_not_removed(file: Path) -> None:
    seen = version_of(file, "a.txt")
    file.parent.chmod(0o555)
    try:
        with pytest.raises(ToolError, match="cannot be removed: permission denied"):
            without_capabilities(lambda: Writer().remove(file, "a.txt", over=seen))
    finally:
        file.parent.chmod(0o755)

    assert file.read_text() == "old"


def test_what_cannot_be_read_has_no_version(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="is a folder"):
        version_of(tmp_path, "folder")


def test_no_file_is_a_version_too(tmp_path: Path) -> None:
    assert version_of(tmp_path / "nope", "nope") == ABSENT
    assert ABSENT.digest == ""


def test_a_file_too_large_to_change_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as made:
        made.truncate(65 << 20)

    with pytest.raises(ToolError, match="too many"):
        version_of(tmp_path / "big", "big")
