"""A record says who runs a command and how it ended, and what a place cannot carry is refused in a sentence."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hermes_agent.sandbox.executions import (
    FILES,
    NOBODY,
    PreparedShells,
    check_text,
    identity_in,
    is_beginning,
    noted_end,
    void,
)
from hermes_agent.sandbox.place import PlaceFailed


def test_a_claim_whose_shell_said_nothing_yet_is_beginning_until_it_is_void(tmp_path: Path):
    (tmp_path / "a").mkdir()
    assert is_beginning(tmp_path / "a")

    assert void(tmp_path / "a")
    assert not void(tmp_path / "a")


def test_who_runs_it_is_read_from_its_own_line_or_its_number():
    line = Path(f"/proc/{os.getpid()}/stat").read_text()

    assert identity_in(line).pid == os.getpid()
    assert identity_in("42\n").pid == 42
    assert identity_in("") == identity_in("nonsense") == NOBODY


@pytest.mark.parametrize(
    ("written", "code", "left"),
    [
        ("0\n", 0, None),
        ("143 3\n", 143, 3),
        ("0\n7\n", 0, None),
        ("", None, None),
        ("0", None, None),
        ("x y\n", None, None),
        ("1 \u00b2\n", None, None),
    ],
)
def test_how_it_ended_is_read_and_nonsense_is_none(written: str, code: int | None, left: int | None):
    assert noted_end(written) == (code, left)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_no_shell_reads_is_refused(text: str):
    with pytest.raises(PlaceFailed):
        check_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("ready", [True, False])
def test_a_record_is_claimed_once(tmp_path: Path, ready: bool) -> None:
    spare, record = PreparedShells(tmp_path), tmp_path / "g" / "a"
    if ready:
        spare.make()
    spare.claim(record)

    with pytest.raises(FileExistsError):
        spare.claim(record)
    with pytest.raises(FileExistsError):
        PreparedShells(tmp_path).claim(record)
    assert names(record) == sorted(FILES)


def test_what_is_ready_is_given_once(tmp_path: Path) -> None:
    spare = PreparedShells(tmp_path)
    spare.make()
    spare.make()
    assert len(names(tmp_path)) == 1

    spare.claim(tmp_path / "a")
    spare.claim(tmp_path / "b")

    assert names(tmp_path) == ["a", "b"]


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    PreparedShells(tmp_path).claim(tmp_path / "a")

    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "a").iterdir()} == {0o600}


def test_what_was_ready_and_is_gone_is_made_again(tmp_path: Path) -> None:
    spare = PreparedShells(tmp_path)
    spare.make()
    for made in tmp_path.glob(".spare.*"):
        shutil.rmtree(made)

    spare.claim(tmp_path / "a")

    assert names(tmp_path / "a") == sorted(FILES)


def test_where_none_can_be_made_that_is_told_by_the_claim(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    spare = PreparedShells(tmp_path / "file")
    spare.make()

    with pytest.raises(OSError, match="Not a directory"):
        spare.claim(tmp_path / "file" / "a")


def test_a_record_that_cannot_be_put_there_is_kept_for_the_next(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    spare = PreparedShells(tmp_path)

    with pytest.raises(NotADirectoryError):
        spare.claim(tmp_path / "a")
    spare.claim(tmp_path / "b")

    assert names(tmp_path) == ["a", "b"]


def test_what_was_left_by_a_program_that_was_killed_goes_too(tmp_path: Path) -> None:
    (tmp_path / ".spare.4194400.dead").mkdir()
    other, spare = PreparedShells(tmp_path), PreparedShells(tmp_path)
    other.make()
    spare.make()
    spare.drop()

    assert len(names(tmp_path)) == 1
    other.claim(tmp_path / "a")
    assert names(tmp_path) == ["a"]
