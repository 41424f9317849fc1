"""What every command has in common: `--json`, examples, completion, words of before, and its whole first sentence."""

from __future__ import annotations

from copy import copy

import click

from hermes_agent.app.operations.access import RENAMED
from hermes_agent.cli.completing import complete
from hermes_agent.cli.examples import epilog_of
from hermes_agent.cli.output import start_json
from hermes_agent.cli.table import SERVES

LONGEST_SENTENCE = 200
JSON_HELP = "As JSON."


def dress(command: click.Command, path: str) -> None:
    """Add what every command has to this one and those below it; nothing is added twice."""
    command.short_help = command.get_short_help_str(LONGEST_SENTENCE)
    complete(command, path)
    if isinstance(command, click.Group):
        for name, each in tuple(command.commands.items()):
            dress(each, f"{path} {name}")
        _keep_words(command, path)
        return
    command.epilog = epilog_of(path)
    if path not in SERVES and not any("--json" in param.opts for param in command.params):
        command.params.append(
            click.Option(["--json"], is_flag=True, expose_value=False, callback=_wanted, help=JSON_HELP)
        )


def _keep_words(group: click.Group, path: str) -> None:
    for before, now in RENAMED.items():
        place, _, word = before.rpartition(" ")
        if place == path and word not in group.commands:
            hidden = group.commands[word] = copy(group.commands[now])
            hidden.hidden = True


def _wanted(_context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        start_json()
