"""`hermes logs`: what the program did, line by line."""

from __future__ import annotations

from typing import Any

import click

from hermes_agent.cli.log_lines import log_options, show_log
from hermes_agent.cli.surface import Surface, pass_surface


@click.command()
@log_options
@pass_surface
def logs(surface: Surface, /, **wanted: Any) -> None:  # noqa: ANN401  click hands each option by its name
    """Show what the program did, line by line.

    Calls of tools, requests to models, approvals, reviews, deliveries. Each line has its session and run. What was
    said, and what tools answered, is in the session itself.

    Example: `hermes logs -f --level warning`.
    """
    show_log(surface.home.log_file, everybody=True, **wanted)
