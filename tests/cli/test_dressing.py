"""What every command has in common."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hermes_agent.cli.group import hermes
from hermes_agent.cli.surface import Surface
from tests.cli.shell import typed


@pytest.mark.parametrize(("before", "now"), [("kanban create", "kanban add"), ("bundles delete", "bundles remove")])
def test_a_word_of_before_still_works_and_is_not_shown(before: str, now: str) -> None:
    group, word = before.split()
    command = hermes.get_command(click.Context(hermes), group)

    assert isinstance(command, click.Group)
    assert command.commands[word].hidden
    assert command.commands[word].callback == command.commands[now.split()[1]].callback
    assert f"  {word}" not in CliRunner().invoke(hermes, [group, "--help"], obj=Surface()).output


def test_what_a_command_did_is_one_object_under_json(tmp_path: Path) -> None:
    said = typed(tmp_path, "config", "set", "agent.max_turns", "5", "--json")

    assert json.loads(said.out) == {
        "key": "agent.max_turns",
        "value": 5,
        "source": "config.yaml:2",
        "text": "agent.max_turns = 5  (config.yaml:2)",
    }
    assert typed(tmp_path, "config", "get", "agent.max_turns").out == "5\n", "the next command speaks in words again"


def test_a_command_that_fails_gives_no_object(tmp_path: Path) -> None:
    said = CliRunner().invoke(
        hermes, ["sessions", "show", "gone", "--json"], obj=Surface(variables={"HERMES_HOME": str(tmp_path)})
    )

    assert (said.stdout, said.exit_code) == ("", 1)
