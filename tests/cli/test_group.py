"""The group and its table."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from hermes_agent.cli.group import hermes
from hermes_agent.cli.table import COMMANDS, SUMMARIES
from tests.cli.shell import program


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_what_the_command_says_of_itself(name: str) -> None:
    command = hermes.get_command(click.Context(hermes), name)

    assert command is not None
    assert command.name == name
    assert SUMMARIES[name] == command.get_short_help_str(200)


def test_a_command_without_a_model_is_not_recorded_and_says_what_is(tmp_path: Path) -> None:
    said = program("--record", str(tmp_path / "tape.jsonl"), "cost", home=tmp_path)

    assert said.code == 2
    assert "--record and --replay are for the chat, -z, `hermes api`, `hermes gateway`, `hermes worker`." in said.err


def test_every_command_has_a_summary() -> None:
    assert list(SUMMARIES) == list(COMMANDS) == sorted(COMMANDS)


def every_command(command: click.Command, path: str) -> list[tuple[str, click.Command]]:
    found = [(path, command)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            found += every_command(inner, f"{path} {name}")
    return found


def test_every_command_and_option_says_what_it_is_for() -> None:
    for path, command in every_command(hermes, "hermes"):
        assert command.help, path
        assert path.count(" ") < 2 or "..." not in command.get_short_help_str(), path
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.help, f"{path} {parameter.name}"
