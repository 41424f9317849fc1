"""`hermes prompt`."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from hermes_agent.core.errors import UnknownSession
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


def test_a_session_without_a_prompt_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnknownSession, match="has no prompt yet"):
        typed(filled(tmp_path), "prompt", "--session", WORK)
