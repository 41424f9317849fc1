"""Subcommands `hermes skills search|browse|inspect|install|uninstall|tap`: skills from repositories."""

from __future__ import annotations

import asyncio

import click

from hermes_agent.app.commands import COMMANDS
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.output import as_json, remark, say, shortened, show, table, wants_json
from hermes_agent.cli.skills.shelf import with_hub
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.shown import plural
from hermes_agent.skills.changes import By
from hermes_agent.skills.depot import Entry, Trust
from hermes_agent.skills.hub.git import HubError, address_of
from hermes_agent.skills.hub.installing import Held, Hub
from hermes_agent.skills.hub.sources import Catalog, Offer, Tap, Taps

FROM = click.option("--from", "source", default="", metavar="ADDRESS", help="A repository, also one that is not a tap.")
AT = click.option("--at", "ref", default="", metavar="REF", help="A branch, a tag or a commit.")
YES = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
FORCE = click.option("--force", is_flag=True, help="Install it in spite of what the scanner found.")
SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A skill of a repository, as a row of search and browse results."""

    name: str
    tap: str
    path: str
    trust: str
    description: str
    problem: str
    installed: bool


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--tap", "tap_name", default="", help="Only this tap.")
@click.option("--refresh", is_flag=True, help="Ask the repositories again, even if they were asked within the hour.")
@pass_surface
def search(surface: Surface, words: tuple[str, ...], tap_name: str, refresh: bool) -> None:
    """Find skills of the taps by words of their name and description."""
    rows = _rows(surface, " ".join(words), tap_name, refresh)
    _list(rows[:50] if not wants_json() else rows, "No tap offers such a skill.")


@click.command()
@click.argument("tap_name", metavar="[TAP]", default="")
@click.option("--refresh", is_flag=True, help="Ask the repositories again, even if they were asked within the hour.")
@pass_surface
def browse(surface: Surface, tap_name: str, refresh: bool) -> None:
    """List what the taps offer."""
    rows = sorted(_rows(surface, "", tap_name, refresh), key=lambda row: (row.tap, row.name))
    _list(rows, "No tap offers a skill; `hermes skills tap add owner/repository` adds one.")


@click.command()
@click.argument("skill")
@FROM
@AT
@pass_surface
def inspect(surface: Surface, skill: str, source: str, ref: str) -> None:
    """Show a skill of a repository: its text, its files, and what the scanner found. Nothing is installed."""

    async def act(hub: Hub, _: By) -> Held:
        async with hub.alone():
            return await hub.hold(await hub.sources.find(skill, source, ref))

    held = with_hub(surface, act)
    if as_json(_report(held)):
        return
    say(held.report.skill.text.rstrip("\n"))
    _show(held)


@click.command()
@click.argument("skill")
@FROM
@AT
@FORCE
@YES
@pass_surface
def install(surface: Surface, skill: str, source: str, ref: str, force: bool, yes: bool) -> int:
    """Install a skill of a repository, pinned to its commit and content.

    SKILL is a name, tap/name, or a path in the repository. Hermes fetches it into quarantine, scans and shows it
    before anything uses it.
    """

    async def act(hub: Hub, by: By) -> tuple[Held, Entry]:
        async with hub.alone():
            held = await hub.hold(await hub.sources.find(skill, source, ref))
            if held.against and not force:
                _show(held)
                raise HubError(f"`{held.name}` was not installed; `--force` installs it all the same.")
            if not yes:
                _show(held)
                remark(f"Until you answer, its files are in {held.folder}")
                click.confirm("Install it?", abort=True, err=True)
            return held, await hub.install(held, by, insist=force)

    held, entry = with_hub(surface, act)
    if as_json({**_report(held), "installed": True}):
        return Exit.OK
    say(f"`{held.name}` is installed, at {entry.commit[:12]}. `hermes skills uninstall {held.name}` removes it.")
    if held.name in COMMANDS:
        remark(f"`/{held.name}` is a command, so the skill has no slash of its own.")
    if held.report.commands:
        remark(f"Its commands run once you trust it: `hermes skills trust {held.name}`")
    return Exit.OK


@click.command()
@click.argument("name")
@pass_surface
def uninstall(surface: Surface, name: str) -> None:
    """Uninstall a skill and its changes. Nothing is lost: `restore` brings it back."""

    async def act(hub: Hub, by: By) -> bool:
        async with hub.alone():
            return await hub.uninstall(name, by)

    copy = with_hub(surface, act)
    say(f"`{name}` is uninstalled{', your changes are archived' if copy else ''}.", name=name)
    say(f"`hermes skills restore {name}` brings it back.")


def _rows(surface: Surface, words: str, tap_name: str, refresh: bool) -> list[Row]:
    async def act(hub: Hub, _: By) -> list[Row]:
        installed = hub.lock.get().skills
        offers = await hub.sources.offers(words, tap_name, fresh=refresh)
        return [_row(offer, installed.get(offer.skill.name)) for offer in offers]

    return with_hub(surface, act)


def _row(offer: Offer, entry: Entry | None) -> Row:
    return Row(
        name=offer.skill.name,
        tap=offer.tap.name,
        path=offer.skill.path,
        trust=offer.tap.trust.value,
        description=offer.skill.description,
        problem=offer.skill.problem,
        installed=entry is not None and (entry.url, entry.path) == (offer.tap.url, offer.skill.path),
    )


def _list(rows: list[Row], nothing: str) -> None:
    if as_json(rows):
        return
    good = [each for each in rows if not each.problem]
    shown = [
        (f"{each.name}{' *' if each.installed else ''}", each.tap, each.trust, shortened(each.description, 80))
        for each in good
    ]
    say(table(shown, ("SKILL", "TAP", "TRUST", "DOES")) if shown else nothing)
    for each in [each for each in rows if each.problem][:SHOWN]:
        remark(f"{each.tap}/{each.path}: {each.problem}")


def _report(held: Held) -> dict[str, object]:
    return {
        "name": held.name,
        "description": held.report.skill.description,
        "source": held.entry,
        "files": held.report.sizes,
        "found": [each.words for each in held.report.seen],
        "against": held.against,
        "commands": held.report.commands,
        "programs": held.report.programs,
    }


def _show(held: Held) -> None:
    """Show what a person should know before installing, on standard error."""
    entry = held.entry
    remark(f"{held.name}: {held.report.skill.description}")
    remark(f"From {entry.url} ({entry.trust.value}), {entry.path or 'its top'} at {entry.commit[:12]} {entry.ref}")
    files = [f"{name} ({size:,})" for name, size in held.report.sizes.items()]
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    remark(f"Files (bytes): {', '.join(files[:SHOWN])}{more}")
    for label, items in (("Would run where trusted", held.report.commands), ("May be run", held.report.programs)):
        if items:
            remark(f"{label}: {'; '.join(items[:SHOWN])}")
    for each in held.report.seen[:SHOWN]:
        remark(f"Scanner: {each.words}")
    if not held.report.seen:
        remark("Scanner: nothing found.")


TRUSTED = click.option(
    "--trust", "trusted", is_flag=True, help="Trust it: mere warnings of the scanner do not stop an installation."
)


@click.group(short_help="Choose the repositories to find skills in.")
def tap() -> None:
    """Choose the repositories to find skills in."""


@tap.command("list")
@pass_surface
def list_(surface: Surface) -> None:
    """List the taps."""
    found = Taps(surface.home.skills).all()
    rows = [(each.name, each.trust.value, each.ref or "(main branch)", each.url) for each in found]
    nothing = "No taps yet: `hermes skills tap add owner/repository`"
    show(found, lambda _: table(rows, ("TAP", "TRUST", "AT", "WHERE")) if rows else nothing)


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
    offers = f"offers {plural(len(found.skills), 'skill')}{left}{more}."
    say(f"`{added.name}` ({trust.value}) {offers}", name=added.name, url=added.url)


@tap.command()
@click.argument("name")
@pass_surface
def remove(surface: Surface, name: str) -> None:
    """Remove a repository. Its installed skills stay."""
    gone = asyncio.run(Taps(surface.home.skills).remove(name))
    say(f"`{gone.name}` is no longer a tap; its installed skills stay.", name=gone.name)
