"""`hermes pairing`: letting people in who were given a code."""

from __future__ import annotations

from functools import partial

import click

from hermes_agent.app.operations import pairing as operations
from hermes_agent.cli.operation import ask, show
from hermes_agent.cli.output import say, table
from hermes_agent.cli.surface import Surface, pass_surface


@click.group(short_help="Let people in who were given a code.")
def pairing() -> None:
    """Let people in who wrote to your agent and were given a code."""


@pairing.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def list_(surface: Surface, as_json: bool) -> None:
    """List who waits, and who was let in."""

    show(ask(surface, operations.list_pairings), listed, as_json=as_json)


def listed(found: operations.Pairings) -> str:
    """Both as a table."""
    rows = [(each.channel, each.user, each.name, "waits") for each in found.waiting]
    rows += [(each.channel, each.user, each.name, "let in") for each in found.paired]
    return table(rows, ("CHANNEL", "USER", "NAME", "")) if rows else "Nobody waits, and nobody was let in."


@pairing.command()
@click.argument("code")
@pass_surface
def approve(surface: Surface, code: str) -> None:
    """Let in whoever was given this code: as a member."""
    known = ask(surface, partial(operations.approve_pairing, code=code))
    say(f"{known.name or known.user} ({known.channel}:{known.user}) is let in.")


@pairing.command()
@click.argument("channel")
@click.argument("user")
@pass_surface
def revoke(surface: Surface, channel: str, user: str) -> None:
    """Let somebody in no more."""
    gone = ask(surface, partial(operations.revoke_pairing, channel=channel, user=user))
    say(f"{channel}:{user} is let in no more." if gone else f"{channel}:{user} was not let in by a code.")


@pairing.command()
@pass_surface
def clear(surface: Surface) -> None:
    """Forget all codes that wait."""
    say(f"{ask(surface, operations.clear_pairings)} codes are forgotten.")
