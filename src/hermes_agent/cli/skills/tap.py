"""`hermes skills tap`: the repositories that are looked through."""

from __future__ import annotations

import asyncio

import click

from hermes_agent.cli.output import say, show, table
from hermes_agent.cli.skills.shelf import JSON, TAP, with_hub
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.plural import plural
from hermes_agent.skills.changes import By
from hermes_agent.skills.depot import Trust
from hermes_agent.skills.hub.catalog import Catalog
from hermes_agent.skills.hub.git import address_of
from hermes_agent.skills.hub.installing import Hub
from hermes_agent.skills.hub.sources import Tap, Taps

TRUSTED = click.option(
    "--trust", "trusted", is_flag=True, help="Trust it: mere warnings of the scanner do not stop an installation."
)


@click.group(short_help="Choose the repositories to find skills in.")
def tap() -> None:
    """Choose the repositories to find skills in."""


@tap.command("list")
@JSON
@pass_surface
def list_(surface: Surface, as_json: bool) -> None:
    """List the taps."""
    found = Taps(surface.home.skills).all()
    rows = [(each.name, each.trust.value, each.ref or "(main branch)", each.url) for each in found]
    nothing = "No taps yet: `hermes skills tap add owner/repository`"
    show(found, lambda _: table(rows, ("TAP", "TRUST", "AT", "WHERE")) if rows else nothing, as_json=as_json)


@tap.command()
@click.argument("address")
@click.option("--name", default="", help="Its name; by default the end of the address.")
@click.option("--at", "ref", default="", metavar="REF", help="A branch or tag instead of the main branch.")
@TRUSTED
@pass_surface
def add(surface: Surface, address: str, name: str, ref: str, trusted: bool) -> None:
    """Add a repository: `owner/repository` on GitHub, an https or ssh address, a folder."""
    where = address_of(address)
    trust = Trust.TRUSTED if trusted else Trust.COMMUNITY
    added = Tap(name=name or where.name, url=where.url, trust=trust, ref=ref)

    async def act(hub: Hub, _: By) -> Catalog:
        catalog = await hub.sources.catalog(added)
        await hub.sources.taps.add(added)
        return catalog

    found = with_hub(surface, act)
    bad = sum(bool(each.problem) for each in found.skills)
    left = f", {bad} of them cannot be used" if bad else ""
    more = f"; {found.left_out} more are too many" if found.left_out else ""
    say(f"`{added.name}` ({trust.value}) offers {plural(len(found.skills), 'skill')}{left}{more}.")


@tap.command()
@click.argument("name", type=TAP)
@pass_surface
def remove(surface: Surface, name: str) -> None:
    """Remove a repository. Its installed skills stay."""
    gone = asyncio.run(Taps(surface.home.skills).remove(name))
    say(f"`{gone.name}` is no longer a tap; its installed skills stay.")
