"""`hermes prompt`."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from hermes_agent.cli.commands.prompt import SAME, Part, differences, measured
from hermes_agent.core.errors import UnknownSession
from hermes_agent.core.tool import Quarantined
from tests.cli.kept import GARDEN, WORK, filled
from tests.cli.shell import typed


def test_a_sessions_prompt_is_measured_by_section(tmp_path: Path) -> None:
    lines = typed(filled(tmp_path), "prompt", "--session", GARDEN).out.splitlines()

    assert [line.split()[:3] for line in lines] == [
        ["SECTION", "BYTES", "TOKENS"],
        ["identity", "15", "4"],
        ["date", "18", "5"],
        ["tools", "2", "1"],
        ["all", "35", "10"],
    ]


def test_the_texts_are_there_in_full(tmp_path: Path) -> None:
    home = filled(tmp_path)

    assert typed(home, "prompt", "--session", GARDEN, "--text", "identity").out == "You are Hermes.\n"
    assert json.loads(typed(home, "prompt", "--session", GARDEN, "--json").out)[0]["text"] == "You are Hermes."
    with pytest.raises(click.UsageError, match="identity, date, tools"):
        typed(home, "prompt", "--session", GARDEN, "--text", "nothing")


def test_two_prompts_are_compared(tmp_path: Path) -> None:
    said = typed(filled(tmp_path), "prompt", "--session", GARDEN, "--against", GARDEN)

    assert said.out == "Both prompts are the same, byte for byte.\n"


def test_two_prompts_are_compared_line_by_line(tmp_path: Path) -> None:
    def part(name: str, text: str) -> Part:
        return Part(name=name, bytes=0, tokens=0, hash="", text=text)

    one, two = (
        [part("identity", "I\nam Ann"), part("date", "Mon")],
        [part("identity", "I\nam Bob"), part("date", "Mon")],
    )

    assert differences(one, two).splitlines() == [
        "--- identity",
        "+++ identity",
        "@@ -1,2 +1,2 @@",
        " I",
        "-am Ann",
        "+am Bob",
    ]
    assert typed(filled(tmp_path), "prompt", "--diff", GARDEN, GARDEN).out == f"{SAME}\n"


def test_a_session_without_a_prompt_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnknownSession, match="has no prompt yet"):
        typed(filled(tmp_path), "prompt", "--session", WORK)


def test_a_session_that_there_is_not_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnknownSession, match="20990101"):
        typed(filled(tmp_path), "prompt", "--session", "20990101_000000_nobody")


def test_the_prompt_of_a_new_session_is_shown_before_a_model_is_chosen(tmp_path: Path) -> None:
    parts = json.loads(typed(filled(tmp_path), "prompt", "--json").out)

    assert [part["name"] for part in parts][:2] == ["identity", "how to work"]
    assert parts[-1]["name"] == "tools"
    assert "read_file" in parts[-1]["text"]


def test_the_prompt_of_a_new_session_fits_the_window_of_its_model(tmp_path: Path) -> None:
    home = filled(tmp_path)
    (home / "SOUL.md").write_text("I am somebody. " * 2_000)
    large = json.loads(typed(home, "prompt", "--json").out)
    (home / "config.yaml").write_text("model:\n  default: ollama/small\n  window: 8192\n")
    small = json.loads(typed(home, "prompt", "--json").out)

    assert small[0]["tokens"] < large[0]["tokens"]


def test_a_new_prompt_is_compared_with_that_of_a_session(tmp_path: Path) -> None:
    lines = typed(filled(tmp_path), "prompt", "--against", GARDEN).out.splitlines()

    assert [line.split()[0] for line in lines][:2] == ["SECTION", "identity"]
    assert not any("byte for byte" in line for line in lines)


def test_tools_that_are_not_offered_are_named_below() -> None:
    said = measured([], [Quarantined(name="odd", reason="its schema refers to itself")])

    assert said.splitlines()[-1] == "The tool `odd` is not offered: its schema refers to itself."
