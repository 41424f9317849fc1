"""Heads, tails, and text as a screen would show it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.messages import Image, Origin, Text
from hermes_agent.core.tool import Answer
from hermes_agent.tools.output import Caps, Spill, cleaned, fits, head_and_tail, is_binary
from hermes_agent.tools.schema import said
from tests.tools.bench import words


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("\x1b[1;31mred\x1b[0m\n", "red\n"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10%\r50%\r100%\ndone", "100%\ndone"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("bell\x07 nul\0 tab\t", "bell\ufffd nul\ufffd tab\t"),
        ("plain käse", "plain käse"),
    ],
)
def test_text_is_cleaned_of_what_only_a_terminal_understands(raw: str, seen: str) -> None:
    assert cleaned(raw) == seen


@pytest.mark.parametrize(
    ("sample", "binary"),
    [(b"text", False), (b"", False), (b"a\0b", True), (bytes(range(128, 255)), True), (b"caf\xe9 with text", False)],
)
def test_output_that_is_no_text_is_known(sample: bytes, binary: bool) -> None:
    assert is_binary(sample) is binary


def test_both_caps_count() -> None:
    caps = Caps(max_bytes=10, max_lines=3)

    assert fits("a\nb\nc", caps)
    assert not fits("a\nb\nc\nd", caps)
    assert not fits("ä" * 6, caps)


def test_the_beginning_and_the_end_are_kept() -> None:
    text = "\n".join(str(number) for number in range(100))

    shown = head_and_tail(text, text, Caps(max_bytes=1000, max_lines=7), left_out="[...]")

    assert shown == "0\n1\n2\n[...]\n97\n98\n99"


@given(st.text(max_size=300), st.integers(40, 200), st.integers(3, 20))
def test_the_caps_hold_for_any_text(text: str, most: int, lines: int) -> None:
    caps = Caps(max_bytes=most, max_lines=lines)

    shown = head_and_tail(text, text, caps, left_out="[left out]")

    assert len(shown.encode()) <= most
    assert shown.count("\n") < lines


def text_of(path: Path) -> str:
    return path.read_text()


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize("text", ["x" * 60_000, "line\n" * 2500, "ä" * 30_000])
async def test_the_whole_is_where_the_answer_says(tmp_path: Path, text: str) -> None:
    shown = words(await Spill(tmp_path).fit("any", said(text, Origin.TOOL), "s-call_1"))

    assert len(shown.encode()) <= 50_000
    assert shown.count("\n") < 2000
    path = re.search(r"the whole is in (\S+)\]", shown)
    assert path is not None
    assert text_of(Path(path[1])) == text


async def test_a_small_answer_stays_as_it_is(tmp_path: Path) -> None:
    answer = said("small", Origin.TOOL)

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
    answer = said("x" * 60_000, Origin.TOOL)

    assert await Spill(tmp_path).fit("read_file", answer, "k") is answer


async def test_the_same_call_is_kept_once(tmp_path: Path) -> None:
    for _ in range(2):
        await Spill(tmp_path).fit("any", said("x" * 60_000, Origin.TOOL), "s-call_1")

    assert len(names_in(tmp_path)) == 1


async def test_what_is_stored_holds_no_secret(tmp_path: Path) -> None:
    spill = Spill(tmp_path, redact=lambda text: text.replace("hunter2-hunter2", "[secret KEY]"))

    shown = words(await spill.fit("any", said("x" * 30_000 + " hunter2-hunter2 " + "y" * 30_000, Origin.TOOL), "k"))

    stored = text_of(tmp_path / names_in(tmp_path)[0])
    assert "hunter2" not in stored + shown
    assert "[secret KEY]" in stored


async def test_what_is_stored_is_private_and_goes_after_thirty_days(tmp_path: Path) -> None:
    for name, days in (("old.txt", 31), ("new.txt", 29)):
        (tmp_path / name).touch()
        when = (tmp_path / name).stat().st_mtime - days * 86_400
        os.utime(tmp_path / name, (when, when))

    await Spill(tmp_path).fit("any", said("x" * 60_000, Origin.TOOL), "k")

    (made,) = set(names_in(tmp_path)) - {"new.txt"}
    assert (tmp_path / made).stat().st_mode & 0o777 == 0o600
    assert "old.txt" not in names_in(tmp_path)
