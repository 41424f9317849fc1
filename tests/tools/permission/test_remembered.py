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

    assert opened(path).has("k1")
    assert not opened(path).has("k2")


async def test_another_process_is_noticed_at_once(path: Path) -> None:
    mine = opened(path)
    assert not mine.has("k1")

    await opened(path).add("k1", tool="terminal", what="a", folder="/")
    await opened(path).add("k2", tool="terminal", what="b", folder="/")

    assert mine.has("k1")
    assert mine.has("k2")


def test_a_person_can_read_it_and_take_an_entry_out(path: Path) -> None:
    file = opened(path)
    asyncio.run(file.add("k1", tool="terminal", what="rm -rf build", folder="/work"))
    text = path.read_text()

    path.write_text(text.partition("- ")[0])

    assert text.startswith("# What you allowed for good")
    assert "what: rm -rf build" in text
    assert not file.has("k1")


def test_a_broken_file_allows_nothing_and_is_told_of(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text("- key: [unfinished")

    with caplog.at_level(logging.WARNING):
        assert not opened(path).has("k1")

    assert "approvals.yaml cannot be read" in caplog.text


def test_a_broken_file_is_not_written_over(path: Path) -> None:
    path.write_text("- key: [unfinished")

    with pytest.raises(HomeError, match="repair it"):
        asyncio.run(opened(path).add("k1", tool="terminal", what="a", folder="/"))

    assert path.read_text() == "- key: [unfinished"
