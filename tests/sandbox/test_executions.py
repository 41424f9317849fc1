"""A record says who runs a command and how it ended, and what a place cannot carry is refused in a sentence."""

import os
from pathlib import Path

import pytest

from hermes_agent.sandbox.executions import (
    MOST_MOVED,
    NOBODY,
    check_text,
    get_file,
    identity_in,
    is_beginning,
    noted_end,
    put_file,
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


def test_files_that_are_too_large_are_not_moved(tmp_path: Path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MOST_MOVED + 1)

    with pytest.raises(PlaceFailed, match="larger"):
        get_file(tmp_path / "large")


def test_a_file_that_cannot_be_written_is_a_sentence(tmp_path: Path):
    (tmp_path / "file").touch()

    with pytest.raises(PlaceFailed, match="cannot be written"):
        put_file(tmp_path / "file" / "a", b"")
