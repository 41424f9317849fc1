"""A result too large to answer with is kept whole and shown as head and tail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes_agent.core.messages import Image, Origin, Text
from hermes_agent.core.tool import Answer
from hermes_agent.tools.schema import said
from hermes_agent.tools.spill import Spill
from tests.tools.bench import words


def text_of(path: Path) -> str:
    return path.read_text()


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize("text", ["x" * 60_000, "line\n" * 2500, "ä" * 30_000])
async def test_the_whole_is_where_the_answer_says(tmp_path: Path, text: str) -> None:
    shown = words(await Spill(tmp_path).fit("any", said(text), "s-call_1"))

    assert len(shown.encode()) <= 50_000
    assert shown.count("\n") < 2000
    path = re.search(r"the whole is in (\S+)\]", shown)
    assert path is not None
    assert text_of(Path(path[1])) == text


async def test_a_small_answer_stays_as_it_is(tmp_path: Path) -> None:
    answer = said("small")

    assert await Spill(tmp_path / "none").fit("any", answer, "k") is answer
    assert not (tmp_path / "none").exists()


async def test_pictures_origin_and_failure_stay(tmp_path: Path) -> None:
    picture = Image(data="AAAA")
    answer = Answer(parts=(Text(text="x" * 60_000, origin=Origin.WEB), picture), is_error=True)

    fitted = await Spill(tmp_path).fit("any", answer, "k")

    assert fitted.parts[0].origin is Origin.WEB
    assert fitted.parts[1] is picture
    assert fitted.is_error


async def test_a_tool_that_pages_by_itself_is_left_alone(tmp_path: Path) -> None:
    answer = said("x" * 60_000)

    assert await Spill(tmp_path).fit("read_file", answer, "k") is answer


async def test_the_same_call_is_kept_once(tmp_path: Path) -> None:
    for _ in range(2):
        await Spill(tmp_path).fit("any", said("x" * 60_000), "s-call_1")

    assert len(names_in(tmp_path)) == 1


async def test_what_is_stored_holds_no_secret(tmp_path: Path) -> None:
    spill = Spill(tmp_path, redact=lambda text: text.replace("hunter2-hunter2", "[secret KEY]"))

    shown = words(await spill.fit("any", said("x" * 30_000 + " hunter2-hunter2 " + "y" * 30_000), "k"))

    stored = text_of(tmp_path / names_in(tmp_path)[0])
    assert "hunter2" not in stored + shown
    assert "[secret KEY]" in stored
