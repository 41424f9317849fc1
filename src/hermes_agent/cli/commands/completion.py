"""Subcommand `hermes completion`: prints the shell completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from hermes_agent.cli.output import say
from hermes_agent.cli.start import COMPLETION


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    Put it into the shell's start file, for example: eval "$(hermes completion bash)"
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    say(kind(context.find_root().command, {}, "hermes", COMPLETION).source())
