"""`hermes pairing`: letting people in who were given a code."""

from __future__ import annotations

import click

from hermes_agent.cli.output import say, say_json, table
from hermes_agent.cli.session_lookup import with_store
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.errors import HermesError
from hermes_agent.store.chats.pairing import Known
from hermes_agent.store.database import Store


@click.group(short_help="Let people in who were given a code.")
def pairing() -> None:
    """Let people in who wrote to your agent and were given a code."""


@pairing.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def list_(surface: Surface, as_json: bool) -> None:
    """List who waits, and who was let in."""

    async def both(store: Store) -> tuple[list[Known], list[Known]]:
        return await store.pairing.waiting(), await store.pairing.paired()

    waiting, paired = with_store(surface, both)
    if as_json:
        say_json({"waiting": waiting, "paired": paired})
        return
    rows = [(each.channel, each.user, each.name, "waits") for each in waiting]
    rows += [(each.channel, each.user, each.name, "let in") for each in paired]
    say(table(rows, ("CHANNEL", "USER", "NAME", "")) if rows else "Nobody waits, and nobody was let in.")


@pairing.command()
@click.argument("code")
@pass_surface
def approve(surface: Surface, code: str) -> None:
    """Let in whoever was given this code: as a member."""
    known = with_store(surface, lambda store: store.pairing.approve(code))
    if known is None:
        raise HermesError("Nobody was given this code, or its hour is over.")
    say(f"{known.name or known.user} ({known.channel}:{known.user}) is let in.")


@pairing.command()
@click.argument("channel")
@click.argument("user")
@pass_surface
def revoke(surface: Surface, channel: str, user: str) -> None:
    """Let somebody in no more."""
    gone = with_store(surface, lambda store: store.pairing.revoke(channel, user))
    say(f"{channel}:{user} is let in no more." if gone else f"{channel}:{user} was not let in by a code.")


@pairing.command()
@pass_surface
def clear(surface: Surface) -> None:
    """Forget all codes that wait."""
    say(f"{with_store(surface, lambda store: store.pairing.clear())} codes are forgotten.")
