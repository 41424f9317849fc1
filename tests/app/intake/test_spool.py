"""Content of any size on its way into a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.app.intake.spool import named, spool
from hermes_agent.core.errors import HermesError, HomeError


def test_the_same_content_is_the_same_private_file(tmp_path: Path) -> None:
    first = spool(tmp_path / "kept", (b"one\n", b"two"))
    again = spool(tmp_path / "kept", (b"one\ntwo",))

    assert first == again
    assert (first.size, first.lines, first.path.read_bytes()) == (7, 1, b"one\ntwo")
    assert (first.path.stat().st_mode & 0o777, first.path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list((tmp_path / "kept").iterdir()) == [first.path]


def test_what_breaks_off_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"one"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spool(tmp_path, broken())

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(HomeError, match=r"file cannot be written \(File exists\)"):
        spool(tmp_path / "file", (b"one",))


def test_a_file_that_is_there_is_counted_and_nothing_else_is_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo\n")

    assert (named(tmp_path / "a").size, named(tmp_path / "a").lines) == (8, 2)
    with pytest.raises(HermesError, match="is not a file"):
        named(tmp_path)
    with pytest.raises(HermesError, match="is not there"):
        named(tmp_path / "b")
