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
from hypothesis import given, strategies as st

from hermes_agent.core.errors import StaleWrite, ToolError
from hermes_agent.tools.files.guard import Guard, ReadLog, content_hash
from hermes_agent.tools.files.writing import ABSENT, Change, Changer, Version, Writer, unified, version_of
from tests.tools.bench import Context


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


LINES = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=30)


def test_a_change_is_shown_with_its_place_in_the_file() -> None:
    before = "\n".join(str(number) for number in range(100))

    shown = unified(before, before.replace("50", "fifty"), "n.txt")

    assert shown.splitlines()[:3] == ["--- a/n.txt", "+++ b/n.txt", "@@ -48,7 +48,7 @@"]
    assert "-50" in shown.splitlines()
    assert "+fifty" in shown.splitlines()


def test_equal_texts_have_no_diff() -> None:
    assert unified("a\nb", "a\nb", "x") == ""


def test_a_long_diff_is_cut_and_says_so() -> None:
    before = "\n".join(f"old {number}" for number in range(400))

    shown = unified(before, before.replace("old", "new"), "x").splitlines()

    assert len(shown) == 201
    assert shown[-1].endswith("more lines of diff]")


def test_thousands_of_changed_lines_are_only_counted() -> None:
    before = "\n".join(f"old {number}" for number in range(50_000))

    assert unified(before, before.replace("old", "new"), "x") == "[50,000 lines became 50,000, from line 1]"


@given(LINES, LINES)
def test_patch_makes_the_new_text_of_the_old_one(before: list[str], after: list[str]) -> None:
    old, new = "".join(f"{line}\n" for line in before), "".join(f"{line}\n" for line in after)
    shown = unified(old, new, "x")
    if not shown:
        assert old == new
        return

    assert applied(old, shown) == new


def applied(old: str, diff: str) -> str:
    """What the diff makes of the text, read as any patch program reads it."""
    source, out, position = old.split("\n"), [], 0
    for row in diff.splitlines()[2:]:
        if row.startswith("@@"):
            first, _, count = row.split()[1][1:].partition(",")
            start = int(first) - (count != "0")
            out += source[position:start]
            position = start
        elif row[:1] == "+":
            out.append(row[1:])
        else:
            assert source[position] == row[1:]
            position += 1
            out += [row[1:]] if row[:1] == " " else []
    return "\n".join([*out, *source[position:]])


@pytest.fixture
def log(home: Path) -> ReadLog:
    return ReadLog(home / "reads")


@pytest.fixture
def changer(home: Path, tmp_path: Path, log: ReadLog) -> Changer:
    return Changer(guard=Guard(home=home, person=tmp_path), log=log, writer=Writer())


def becomes(path: str, content: bytes | None, *, blind: bool = True) -> Change:
    return Change(path=path, make=lambda before: (content, f"{path}!"), blind=blind, removes=content is None)


def test_what_was_written_is_known_to_the_session(changer: Changer, log: ReadLog, workspace: Path) -> None:
    answer = changer.swap(Context(workspace=str(workspace)), [becomes("a", b"1\n"), becomes("b", b"2\n")])

    assert answer == "a!\nb!"
    assert log.known(Context(workspace="").session, workspace / "b") == content_hash(b"2\n")


def test_a_change_that_cannot_be_made_leaves_all_files(changer: Changer, workspace: Path) -> None:
    def fails(before: Version) -> tuple[bytes, str]:
        raise ToolError("no")

    with pytest.raises(ToolError, match="no"):
        changer.swap(Context(workspace=str(workspace)), [becomes("a", b"1"), Change(path="b", make=fails, blind=True)])

    assert list(workspace.iterdir()) == []


def test_a_file_that_is_not_known_is_not_replaced_unless_blindly(changer: Changer, workspace: Path) -> None:
    (workspace / "a").write_text("precious")

    with pytest.raises(StaleWrite, match="was not read"):
        changer.swap(Context(workspace=str(workspace)), [becomes("a", b"1", blind=False)])
    changer.swap(Context(workspace=str(workspace)), [becomes("a", None)])

    assert not (workspace / "a").exists()
