"""Several files change together or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.core.errors import StaleWrite, ToolError
from hermes_agent.tools.files.changes import Change, Changer
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.files.readlog import ReadLog, content_hash
from hermes_agent.tools.files.writing import Version, Writer
from tests.tools.bench import Context


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
