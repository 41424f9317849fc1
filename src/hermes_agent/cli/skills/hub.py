"""Subcommands of `hermes skills` about repositories: find, inspect, install, update, audit and publish skills; taps."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import click

from hermes_agent.app.commands import COMMANDS
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.output import columns, remark, say, shortened, show
from hermes_agent.cli.skills.shelf import with_hub
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.shown import plural
from hermes_agent.host.paths import current_folder
from hermes_agent.skills.changes import By
from hermes_agent.skills.depot import Entry, Trust
from hermes_agent.skills.hub.git import HubError, address_of
from hermes_agent.skills.hub.installing import Held, Hub, audit as look_again
from hermes_agent.skills.hub.publishing import Letter, Published, publish as give
from hermes_agent.skills.hub.sources import Catalog, Offer, Sources, Tap, Taps
from hermes_agent.skills.hub.updating import Keep, Standing, Wish, standing, update_all

FROM = click.option("--from", "source", default="", metavar="ADDRESS", help="A repository, also one that is not a tap.")
AT = click.option("--at", "ref", default="", metavar="REF", help="A branch, a tag or a commit.")
YES = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
FORCE = click.option("--force", is_flag=True, help="Install it in spite of what the scanner found.")
SHOWN, MOST_FOUND = 20, 50


OFFERED = columns(
    SKILL=lambda each: f"{each['name']}{' *' if each['installed'] else ''}",
    TAP="tap",
    TRUST="trust",
    DOES=lambda each: shortened(each["description"], 80),
)
AUTHOR = re.compile(r"([^<>]+)<([^<>\s]+)>")
NAMES = click.argument("names", nargs=-1)
NONE = "No skill is installed."


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--tap", "tap_name", default="", help="Only this tap.")
@click.option("--refresh", is_flag=True, help="Ask the repositories again, even if they were asked within the hour.")
@pass_surface
def search(surface: Surface, words: tuple[str, ...], tap_name: str, refresh: bool) -> None:
    """Find skills of the taps by words of their name and description."""
    _list(_rows(surface, " ".join(words), tap_name, refresh), "No tap offers such a skill.", most=MOST_FOUND)


@click.command()
@click.argument("tap_name", metavar="[TAP]", default="")
@click.option("--refresh", is_flag=True, help="Ask the repositories again, even if they were asked within the hour.")
@pass_surface
def browse(surface: Surface, tap_name: str, refresh: bool) -> None:
    """List what the taps offer."""
    rows = sorted(_rows(surface, "", tap_name, refresh), key=lambda row: (row["tap"], row["name"]))
    _list(rows, "No tap offers a skill; `hermes skills tap add owner/repository` adds one.")


@click.command()
@click.argument("skill")
@FROM
@AT
@pass_surface
def inspect(surface: Surface, skill: str, source: str, ref: str) -> None:
    """Show a skill of a repository: its text, its files, and what the scanner found. Nothing is installed."""
    held = with_hub(surface, lambda hub, _: _held(hub, skill, source, ref), alone=True)
    show(_report(held), held.report.skill.text.rstrip("\n"), notes=_shown(held))


async def _held(hub: Hub, skill: str, source: str, ref: str) -> Held:
    return await hub.hold(await hub.sources.find(skill, source, ref))


@click.command()
@click.argument("skill")
@FROM
@AT
@FORCE
@YES
@pass_surface
def install(surface: Surface, skill: str, source: str, ref: str, force: bool, yes: bool) -> None:
    """Install a skill of a repository, pinned to its commit and content.

    SKILL is a name, tap/name, or a path in the repository. Hermes fetches it into quarantine, scans and shows it
    before anything uses it.
    """

    async def act(hub: Hub, by: By) -> tuple[Held, Entry]:
        held = await _held(hub, skill, source, ref)
        refused = held.against and not force
        if refused or not yes:
            remark("\n".join(_shown(held)))
        if refused:
            raise HubError(f"`{held.name}` was not installed; `--force` installs it all the same.")
        if not yes:
            remark(f"Until you answer, its files are in {held.folder}")
            click.confirm("Install it?", abort=True, err=True)
        return held, await hub.install(held, by, insist=force)

    held, entry = with_hub(surface, act, alone=True)
    notes = {
        f"`/{held.name}` is a command, so the skill has no slash of its own.": held.name in COMMANDS,
        f"Its commands run once you trust it: `hermes skills trust {held.name}`": held.report.commands,
    }
    words = f"`{held.name}` is installed, at {entry.commit[:12]}. `hermes skills uninstall {held.name}` removes it."
    show({**_report(held), "installed": True}, words, notes=[note for note, holds in notes.items() if holds])


@click.command()
@click.argument("name")
@pass_surface
def uninstall(surface: Surface, name: str) -> None:
    """Uninstall a skill and its changes. Nothing is lost: `restore` brings it back."""
    copy = with_hub(surface, lambda hub, by: hub.uninstall(name, by), alone=True)
    say(f"`{name}` is uninstalled{', your changes are archived' if copy else ''}.", name=name)
    say(f"`hermes skills restore {name}` brings it back.")


def _rows(surface: Surface, words: str, tap_name: str, refresh: bool) -> list[dict[str, Any]]:
    async def act(hub: Hub, _: By) -> list[dict[str, Any]]:
        installed = hub.lock.get().skills
        offers = await hub.sources.offers(words, tap_name, fresh=refresh)
        return [_row(offer, installed.get(offer.skill.name)) for offer in offers]

    return with_hub(surface, act)


def _row(offer: Offer, entry: Entry | None) -> dict[str, Any]:
    return {
        "name": offer.skill.name,
        "tap": offer.tap.name,
        "path": offer.skill.path,
        "trust": offer.tap.trust.value,
        "description": offer.skill.description,
        "problem": offer.skill.problem,
        "installed": entry is not None and (entry.url, entry.path) == (offer.tap.url, offer.skill.path),
    }


def _list(rows: list[dict[str, Any]], nothing: str, most: int | None = None) -> None:
    good = [each for each in rows if not each["problem"]][:most]
    problems = [f"{each['tap']}/{each['path']}: {each['problem']}" for each in rows if each["problem"]]
    show(rows, lambda _: OFFERED(good) if good else nothing, nothing=nothing, notes=problems[:SHOWN])


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


def _shown(held: Held) -> list[str]:
    """What a person should know before installing."""
    entry = held.entry
    files = [f"{name} ({size:,})" for name, size in held.report.sizes.items()]
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    runs = (("Would run where trusted", held.report.commands), ("May be run", held.report.programs))
    return [
        f"{held.name}: {held.report.skill.description}",
        f"From {entry.url} ({entry.trust.value}), {entry.path or 'its top'} at {entry.commit[:12]} {entry.ref}",
        f"Files (bytes): {', '.join(files[:SHOWN])}{more}",
        *(f"{label}: {'; '.join(items[:SHOWN])}" for label, items in runs if items),
        *(f"Scanner: {each.words}" for each in held.report.seen[:SHOWN]),
        *(() if held.report.seen else ("Scanner: nothing found.",)),
    ]


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
    taps = columns(TAP="name", TRUST="trust", AT=lambda each: each.ref or "(main branch)", WHERE="url")
    show(Taps(surface.home.skills).all(), taps, nothing="No taps yet: `hermes skills tap add owner/repository`")


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


@click.command()
@NAMES
@pass_surface
def check(surface: Surface, names: tuple[str, ...]) -> None:
    """Check the sources of installed skills for newer versions, and change nothing."""

    async def act(hub: Hub, _: By) -> list[Standing]:
        return [await standing(hub, name) for name in names or sorted(hub.lock.get().skills)]

    found = with_hub(surface, act)
    show(found, STANDING, nothing=NONE)


@click.command()
@NAMES
@click.option(
    "--keep", type=click.Choice([each.value for each in Keep][1:]), help="Which side wins where both changed it."
)
@click.option("--moved", is_flag=True, help="Follow tags that were moved.")
@click.option("--back", is_flag=True, help="Undo the last update of these skills.")
@FORCE
@pass_surface
def update(surface: Surface, names: tuple[str, ...], keep: str | None, moved: bool, back: bool, force: bool) -> int:
    """Update installed skills, and merge updates into your changed copies of bundled and external ones.

    Your changes stay: Hermes merges both sides, or shows the conflict and changes nothing. It skips pinned skills
    and moved tags.
    """
    wish = Wish(keep=Keep(keep or Keep.NEITHER), moved=moved, back=back, insist=force)
    found = with_hub(surface, lambda hub, by: update_all(hub, names, by, wish), alone=True)
    words = "\n".join(f"{each.name}: {each.did}" for each in found)
    notes = [f"--- {each.name}/{file.file}\n{file.text.rstrip()}" for each in found for file in each.conflicts]
    code = Exit.OK if all(each.ok for each in found) else Exit.FAILED
    return show(found, words or "No skill is installed, and your copies are up to date.", notes=notes, code=code)


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also your own skills, the project's and external ones.")
@pass_surface
def audit(surface: Surface, everything: bool) -> int:
    """Check installed skills against their lock, and scan them by today's rules."""
    found = with_hub(surface, lambda hub, _: look_again(hub, str(current_folder()), everything=everything))
    grave = [f"{each.name}: {words}" for each in found for words in each.grave]
    notes = [f"{each.name}: note: {words}" for each in found for words in each.notes]
    return show(found, AUDITED, nothing=NONE, notes=(*grave, *notes), code=Exit.FAILED if grave else Exit.OK)


@click.command()
@click.argument("name")
@click.option("--to", "target", required=True, metavar="TAP", help="A tap, or the address of a repository.")
@click.option("--push", is_flag=True, help="Send the branch to the repository too.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Where to write the patch.")
@click.option("--author", default="", metavar="'NAME <MAIL>'", help="Who the commit is by.")
@click.option("-m", "--message", default="", help="The commit's message.")
@pass_surface
def publish(  # noqa: PLR0913  what a person may say about it
    surface: Surface,
    name: str,
    target: str,
    push: bool,
    output: Path | None,
    author: str,
    message: str,
) -> None:
    """Commit a skill to a branch of a repository, and write a patch to send.

    Skills with secrets or alarms of the scanner are refused.
    """

    async def act(hub: Hub, _: By) -> Published:
        header = await hub.writer.library.find(name, str(current_folder()))
        letter = Letter(message=message, push=push, **({"author": _author(author)} if author else {}))
        return await give(hub.sources, _target(hub.sources, target), name, header.path, letter)

    made = with_hub(surface, act)
    patch = output or current_folder() / f"{name}.patch"
    patch.write_bytes(made.patch)
    told = {"name": name, "branch": made.branch, "commit": made.commit, "base": made.base, "path": made.path}
    where = f"The branch `{made.branch}` is at {target}" if made.pushed else f"The branch would be `{made.branch}`"
    words = f"`{name}` as {made.path} on {made.base[:12]}: {patch}\n{where}; `git am {patch.name}` applies the patch."
    show({**told, "patch": str(patch), "pushed": made.pushed}, words)


def _target(sources: Sources, text: str) -> Tap:
    known = {tap.name: tap for tap in sources.taps.all()}
    return known[text] if text in known else Tap(name=text, url=address_of(text).url)


def _author(text: str) -> tuple[str, str]:
    found = AUTHOR.fullmatch(text.strip())
    if found is None:
        raise HubError(f"`{text}` is not an author: 'Name <mail>'.")
    return found[1].strip(), found[2].strip()


def _marks(found: Standing) -> str:
    return ", ".join(word for word, said in (("pinned", found.pinned), ("changed by you", found.changed)) if said)


STANDING = columns(
    SKILL="name",
    STATUS="status",
    HERE=lambda each: each.commit[:12],
    THERE=lambda each: each.there[:12],
    _=_marks,
    __="words",
)
AUDITED = columns(
    SKILL="name",
    OWNER="owner",
    INTACT=lambda each: "yes" if each.intact else "NO",
    COMMIT=lambda each: each.commit[:12],
    FROM="source",
)
