"""`hermes memory facts`: what the memory `holographic` knows, its changes, and taking them back."""

from __future__ import annotations

from functools import partial

import click

from hermes_agent.app.operations import facts as operations
from hermes_agent.cli.operation import ask, show
from hermes_agent.cli.output import say
from hermes_agent.cli.surface import Surface, pass_surface

LIMIT = partial(click.option, "-n", "--limit", show_default=True, type=click.IntRange(1), help="How many at most.")
JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.group(short_help="The facts of the memory `holographic`.")
def facts() -> None:
    """Show, judge and take back the facts that the memory `holographic` keeps."""


@facts.command("show")
@LIMIT(default=100)
@JSON
@pass_surface
def show_(surface: Surface, limit: int, as_json: bool) -> None:
    """Show the facts in force, everybody's, the newest first: trust, who told them, from which messages."""
    found = ask(surface, partial(operations.list_facts, limit=limit))
    show(found, operations.fact_lines, as_json=as_json, nothing=operations.NONE_KNOWN)


@facts.command("log")
@LIMIT(default=20)
@JSON
@pass_surface
def log(surface: Surface, limit: int, as_json: bool) -> None:
    """Show every change, the newest first; `-` stands for a fact that is not in force."""
    found = ask(surface, partial(operations.fact_log, limit=limit))
    show(found, operations.change_lines, as_json=as_json, nothing=operations.NONE_KNOWN)


@facts.command("retract")
@click.argument("fact", type=int)
@pass_surface
def retract(surface: Surface, fact: int) -> None:
    """Take a fact out of force: it is not recalled any more. It is kept, and `undo` puts it back."""
    say(ask(surface, partial(operations.retract_fact, fact=fact)))


@facts.command("undo")
@click.argument("change", type=int)
@pass_surface
def undo(surface: Surface, change: int) -> None:
    """Take back the change of that number (`hermes memory facts log`)."""
    say(ask(surface, partial(operations.undo_fact, change=change)))
