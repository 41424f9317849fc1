"""Approvals for good, in a file that a person can read."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from hermes_agent.core.errors import HomeError
from hermes_agent.testing.clock import FakeClock
from hermes_agent.tools.permission.remembered import RememberedFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "approvals.yaml"


def opened(path: Path) -> RememberedFile:
    return RememberedFile(path, FakeClock(now=1_700_000_000.0))


async def test_an_approval_lasts(path: Path) -> None:
    await opened(path).add("k1", tool="terminal", what="rm -rf build", folder="/work")

    assert opened(path).program("k1") == ""
    assert opened(path).program("k2") is None


async def test_another_process_is_noticed_at_once(path: Path) -> None:
    mine = opened(path)
    assert mine.program("k1") is None

    await opened(path).add("k1", tool="terminal", what="a", folder="/")
    await opened(path).add("k2", tool="terminal", what="b", folder="/")

    assert mine.program("k1") == ""
    assert mine.program("k2") == ""


def test_a_person_can_read_it_and_take_an_entry_out(path: Path) -> None:
    file = opened(path)
    asyncio.run(file.add("k1", tool="terminal", what="rm -rf build", folder="/work"))
    text = path.read_text()

    path.write_text(text.partition("- ")[0])

    assert text.startswith("# What you allowed for good")
    assert "what: rm -rf build" in text
    assert file.program("k1") is None


def test_a_broken_file_allows_nothing_and_is_told_of(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text("- key: [unfinished")

    with caplog.at_level(logging.WARNING):
        assert opened(path).program("k1") is None

    assert "approvals.yaml cannot be read" in caplog.text


def test_a_broken_file_is_not_written_over(path: Path) -> None:
    path.write_text("- key: [unfinished")

    with pytest.raises(HomeError, match="repair it"):
        asyncio.run(opened(path).add("k1", tool="terminal", what="a", folder="/"))

    assert path.read_text() == "- key: [unfinished"


async def test_approvals_are_listed_and_withdrawn(path: Path) -> None:
    mine = opened(path)
    await mine.add("k1", tool="terminal", what="git push", folder="/w", program="/bin/git 1")
    await mine.add("k2", tool="terminal", what="make", folder="/w")

    await mine.withdraw("k2")

    assert [(each.key, each.program) for each in opened(path).list()] == [("k1", "/bin/git 1")]
    assert mine.knows({"git push"})
    assert not mine.knows({"make"})


def test_an_entry_of_an_earlier_version_is_valid(path: Path) -> None:
    path.write_text("- {key: k1, tool: terminal, what: a, folder: /w, when: 1.0}\n")

    assert opened(path).program("k1") == ""
