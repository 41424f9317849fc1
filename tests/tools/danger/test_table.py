"""A table of commands, many after public lists: what does harm never runs unasked, what does not is let be.

Each row of `commands.jsonl` says what is expected (`run`, `ask`: at least a question, `block`: never) and where the
command is from.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_agent.tools.danger.judging import judge
from hermes_agent.tools.danger.verdict import Where

ROWS = [json.loads(line) for line in (Path(__file__).parent / "commands.jsonl").read_text().splitlines()]
HARMFUL = [row["command"] for row in ROWS if row["expect"] != "run"]
HARMLESS = [row["command"] for row in ROWS if row["expect"] == "run"]
PUBLIC = ("tldr", "GTFOBins", "lists of")
HERE = Where(folder="/work/project", writable=("/work/project", "/tmp"))
MOST_ASKED = 0.03


def test_the_table_is_large_and_has_150_commands_from_public_lists() -> None:
    public = [row for row in ROWS if row["source"].startswith(PUBLIC)]

    assert len(HARMFUL) >= 150
    assert len(HARMLESS) >= 150
    assert len(public) >= 150
    assert len({row["command"] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("command", HARMFUL)
def test_what_does_harm_never_runs_without_a_yes(command: str) -> None:
    found = judge(command, HERE)

    assert found.blocked or found.asks


@pytest.mark.parametrize("command", [row["command"] for row in ROWS if row["expect"] == "block"])
def test_what_destroys_never_runs_at_all(command: str) -> None:
    assert judge(command, HERE).blocked


def test_hardly_any_harmless_command_is_asked_about() -> None:
    asked = [command for command in HARMLESS if judge(command, HERE).asks or judge(command, HERE).blocked]

    assert len(asked) <= MOST_ASKED * len(HARMLESS), asked
