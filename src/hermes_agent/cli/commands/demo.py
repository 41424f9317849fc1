"""Subcommand `hermes demo`: the real program with a scripted model on a sample project, killed and resumed."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

import click

from hermes_agent.cli.demo.learning import demonstrate_learning
from hermes_agent.cli.demo.show import demonstrate
from hermes_agent.cli.demo.work import demonstrate_work
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.output import announce
from hermes_agent.cli.surface import Surface, pass_surface


@click.command(short_help="Show the program at work, without a key.")
@click.option("--learning", is_flag=True, help="Show how a task that was done once is done in a third of the work.")
@click.option("--work", is_flag=True, help="Show a goal, agents, a card and a scheduled job.")
@click.option("--keep", is_flag=True, help="Leave the folder with the project, the home and its database.")
@pass_surface
def demo(surface: Surface, learning: bool, work: bool, keep: bool) -> int:
    """Repair a small broken project and extend it, killed and resumed in between, with a scripted model: no key."""
    folder = Path(tempfile.mkdtemp(prefix="hermes-demo-"))
    held = False
    try:
        show = demonstrate_learning if learning else demonstrate_work if work else demonstrate
        held = asyncio.run(show(folder, surface.variables))
    finally:
        if held and not keep:
            shutil.rmtree(folder, ignore_errors=True)
            announce("The folder is removed again (--keep leaves it).")
        else:
            announce(f"Everything is left in {folder}")
    return Exit.OK if held else Exit.FAILED
