"""Subcommand `hermes chat`: the same terminal chat as `hermes` without a subcommand."""

from __future__ import annotations

import click

from hermes_agent.cli.start import run_surface
from hermes_agent.cli.surface import Surface, pass_surface


@click.command(short_help="Start a chat, as `hermes` alone does.")
@pass_surface
def chat(surface: Surface) -> int:
    """Start a chat, as `hermes` alone does. The options of a chat stand before: `hermes -c chat`."""
    return run_surface("chat", surface.invocation)
