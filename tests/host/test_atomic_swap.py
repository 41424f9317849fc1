"""Replacing a file while a person may save it in the same moment."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from hermes_agent.core.errors import HomeError
from hermes_agent.host.atomic_swap import EXCHANGE, NO_REPLACE, aside_of, renamed, replace_known
from hermes_agent.host.process import run

APPENDS = """
import sys, time
for number in range(200):
    with open(sys.argv[1], "a") as file:
        print("hand", number, file=file)
    time.sleep(0.005)
"""


def cannot(_old: Path, _new: Path, _how: int) -> None:
    raise NotImplementedError


def only(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


EITHER_WAY = pytest.mark.parametrize("rename", [renamed, cannot], ids=["exchanged", "compared"])


@EITHER_WAY
def test_a_file_is_replaced_only_while_it_holds_what_is_expected(tmp_path: Path, rename):
    file = tmp_path / "a"

    assert replace_known(file, b"one", None, rename=rename)
    assert not replace_known(file, b"two", b"zero", rename=rename)
    assert not replace_known(file, b"two", None, rename=rename)
    assert replace_known(file, b"two", b"one", rename=rename)

    assert (file.read_bytes(), file.stat().st_mode & 0o777, only(tmp_path)) == (b"two", 0o600, ["a"])


@EITHER_WAY
def test_a_file_is_removed_only_while_it_holds_what_is_expected(tmp_path: Path, rename):
    file = tmp_path / "a"
    file.write_bytes(b"theirs")

    assert not replace_known(file, None, b"ours", rename=rename)
    assert file.read_bytes() == b"theirs"
    assert replace_known(file, None, b"theirs", rename=rename)
    assert not replace_known(file, None, b"theirs", rename=rename)

    assert only(tmp_path) == []


@EITHER_WAY
def test_a_file_that_is_gone_is_not_made_again(tmp_path: Path, rename):
    assert not replace_known(tmp_path / "a", b"two", b"one", rename=rename)

    assert only(tmp_path) == []


WITHOUT_LEASES = """
import fcntl, sys
from pathlib import Path
for name in ("F_SETSIG", "F_SETLEASE", "F_GETLEASE"):
    delattr(fcntl, name)
from hermes_agent.host.atomic_swap import replace_known

def cannot(old, new, how):
    raise NotImplementedError

file = Path(sys.argv[1])
assert replace_known(file, b"two", b"one", rename=cannot)
assert not replace_known(file, b"three", b"one", rename=cannot)
assert replace_known(file, None, b"two", rename=cannot)
"""


async def test_a_system_without_leases_as_macos_compares(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"one")

    done = await run([sys.executable, "-c", WITHOUT_LEASES, str(tmp_path / "a")], env=os.environ)

    assert (done.code, done.err, only(tmp_path)) == (0, b"", [])


def test_a_link_is_followed(tmp_path: Path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there/real").write_bytes(b"one")
    (tmp_path / "a").symlink_to(tmp_path / "there/real")

    assert replace_known(tmp_path / "a", b"two", b"one")

    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "there/real").read_bytes() == b"two"


class Meanwhile:
    """Renames as the system does; a person does one thing before each step and one after it, as long as there are."""

    def __init__(self, *moments) -> None:
        self.moments = list(moments)

    def __call__(self, old: Path, new: Path, how: int) -> None:
        self.moment()
        renamed(old, new, how)
        self.moment()

    def moment(self) -> None:
        if self.moments and (act := self.moments.pop(0)):
            act()


def saves(file: Path, text: bytes):
    """An editor that puts a new file in the place of the old one."""

    def act() -> None:
        draft = file.with_name("draft")
        draft.write_bytes(text)
        draft.replace(file)

    return act


def test_what_is_saved_between_the_last_look_and_the_exchange_stands(tmp_path: Path):
    file = tmp_path / "a"
    file.write_bytes(b"one")

    assert not replace_known(file, b"ours", b"one", rename=Meanwhile(saves(file, b"saved")))

    assert (file.read_bytes(), only(tmp_path)) == (b"saved", ["a"])


def test_what_is_saved_between_the_exchange_and_its_undoing_stands(tmp_path: Path):
    file = tmp_path / "a"
    file.write_bytes(b"one")
    rename = Meanwhile(saves(file, b"saved first"), saves(file, b"saved second"))

    assert not replace_known(file, b"ours", b"one", rename=rename)

    assert (file.read_bytes(), only(tmp_path)) == (b"saved second", ["a"])


def test_a_file_that_is_deleted_in_that_moment_is_not_made_again(tmp_path: Path):
    file = tmp_path / "a"
    file.write_bytes(b"one")

    assert not replace_known(file, b"ours", b"one", rename=Meanwhile(file.unlink))

    assert only(tmp_path) == []


def test_what_is_saved_while_a_file_is_being_removed_stands(tmp_path: Path):
    file = tmp_path / "a"
    file.write_bytes(b"one")

    assert not replace_known(file, None, b"one", rename=Meanwhile(saves(file, b"saved")))
    assert file.read_bytes() == b"saved"
    rename = Meanwhile(saves(file, b"saved first"), saves(file, b"saved second"))
    assert not replace_known(file, None, b"saved", rename=rename)

    assert (file.read_bytes(), only(tmp_path)) == (b"saved second", ["a"])


def test_an_editor_that_opens_the_file_in_that_moment_writes_into_the_file_that_stands(tmp_path: Path):
    file = tmp_path / "a"
    file.write_bytes(b"one")

    def opens() -> None:
        with pytest.raises(BlockingIOError):  # The kernel would let it wait; it asks not to.
            os.open(file, os.O_WRONLY | os.O_NONBLOCK)

    assert not replace_known(file, b"ours", b"one", rename=Meanwhile(opens))

    assert (file.read_bytes(), only(tmp_path)) == (b"one", ["a"])


async def test_an_editor_that_writes_in_place_is_waited_for_and_its_text_stands(tmp_path: Path):
    file = tmp_path / "a"
    file.write_bytes(b"")

    with file.open("wb", buffering=0) as editor:
        replacing = asyncio.create_task(asyncio.to_thread(replace_known, file, b"ours\n", b"", patience=20))
        await asyncio.sleep(0)
        editor.write(b"one, edited\n")

    assert not await replacing
    assert (file.read_bytes(), only(tmp_path)) == (b"one, edited\n", ["a"])


def test_a_program_that_never_ends_writing_is_told_of_and_keeps_its_file(tmp_path: Path):
    file = tmp_path / "a"
    file.write_bytes(b"one\n")

    with file.open("ab", buffering=0) as log:
        with pytest.raises(HomeError, match="open in a program that is writing it"):
            replace_known(file, b"ours\n", b"one\n", patience=0.01)
        log.write(b"two\n")

    assert (file.read_bytes(), only(tmp_path)) == (b"one\ntwo\n", ["a"])


def test_a_folder_in_its_place_is_left_alone_and_told(tmp_path: Path):
    (tmp_path / "a/inside").mkdir(parents=True)

    with pytest.raises(HomeError, match=r"cannot be written \(Is a directory\)"):
        replace_known(tmp_path / "a", b"ours", b"one")

    assert (tmp_path / "a/inside").is_dir()
    assert only(tmp_path) == ["a"]


def test_a_folder_that_is_gone_is_told(tmp_path: Path):
    with pytest.raises(HomeError, match="cannot be written"):
        replace_known(tmp_path / "gone/a", b"ours", None)


def test_what_the_system_refuses_is_told(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"one")

    def refused(_old: Path, _new: Path, _how: int) -> None:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(HomeError, match=r"cannot be written \(Permission denied\)"):
        replace_known(tmp_path / "a", b"ours", b"one", rename=refused)

    assert (tmp_path / "a").read_bytes() == b"one"
    assert aside_of(tmp_path / "a").read_bytes() == b"ours"


def test_a_way_of_renaming_that_the_kernel_does_not_know_is_no_crash(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"one")

    with pytest.raises(NotImplementedError):
        renamed(tmp_path / "a", tmp_path / "b", EXCHANGE | NO_REPLACE)


async def test_no_line_that_a_person_appends_is_lost_while_another_program_replaces_the_file(tmp_path: Path):
    """A program appends a line every few milliseconds, in place; this one puts its own in as fast as it can."""
    file = tmp_path / "a"
    file.write_text("")
    person = await asyncio.create_subprocess_exec(sys.executable, "-c", APPENDS, str(file), env={"PATH": os.defpath})

    kept = []
    while person.returncode is None:
        line = f"ours {len(kept)}\n"
        before = file.read_bytes()
        if await asyncio.to_thread(replace_known, file, before + line.encode(), before):
            kept.append(line)

    lines = file.read_text().splitlines(keepends=True)
    assert sorted(lines) == sorted([*kept, *(f"hand {number}\n" for number in range(200))])
    assert len(kept) > 1
