"""Subcommand `hermes status`: who serves this home, what runs, and what waits for whom."""

from __future__ import annotations

import click

from hermes_agent.app.operations.status import show_status, status_text
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import show
from hermes_agent.cli.surface import Surface, pass_surface


@click.command(short_help="Show what runs, and what waits for whom.")
@pass_surface
def status(surface: Surface) -> None:
    """Show which processes serve this home, which work runs, what waits and for whom, and what nobody runs."""
    show(ask(surface, show_status), status_text)
