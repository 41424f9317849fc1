"""Subcommands `hermes skills check|update|audit|publish`: check, update and audit installed skills, publish own
ones."""

from __future__ import annotations

import re
from pathlib import Path

import click

from hermes_agent.cli.exits import Exit
from hermes_agent.cli.output import as_json, remark, say, show, table
from hermes_agent.cli.skills.hub import FORCE
from hermes_agent.cli.skills.shelf import with_hub
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.host.paths import current_folder
from hermes_agent.skills.changes import By
from hermes_agent.skills.hub.git import HubError, address_of
from hermes_agent.skills.hub.installing import Audited, Hub, audit as look_again
from hermes_agent.skills.hub.publishing import Letter, Published, publish as give
from hermes_agent.skills.hub.sources import Sources, Tap
from hermes_agent.skills.hub.updating import Keep, Outcome, Standing, Wish, standing, update_all

AUTHOR = re.compile(r"([^<>]+)<([^<>\s]+)>")
NAMES = click.argument("names", nargs=-1)


@click.command()
@NAMES
@pass_surface
def check(surface: Surface, names: tuple[str, ...]) -> None:
    """Check the sources of installed skills for newer versions, and change nothing."""

    async def act(hub: Hub, _: By) -> list[Standing]:
        return [await standing(hub, name) for name in names or sorted(hub.lock.get().skills)]

    found = with_hub(surface, act)
    rows = [
        (each.name, each.status.value, each.commit[:12], each.there[:12] or "-", _marks(each), each.words)
        for each in found
    ]
    heads, nothing = ("SKILL", "STATUS", "HERE", "THERE", "", ""), "No skill is installed."
    show(found, lambda _: table(rows, heads) if rows else nothing)


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

    async def act(hub: Hub, by: By) -> list[Outcome]:
        async with hub.alone():
            return await update_all(hub, names, by, wish)

    outcomes = with_hub(surface, act)
    if as_json(outcomes):
        return _code(outcomes)
    for each in outcomes:
        say(f"{each.name}: {each.did}")
        for conflict in each.conflicts:
            remark(f"--- {each.name}/{conflict.file}\n{conflict.text.rstrip()}")
    if not outcomes:
        say("No skill is installed, and your copies are up to date.")
    return _code(outcomes)


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also your own skills, the project's and external ones.")
@pass_surface
def audit(surface: Surface, everything: bool) -> int:
    """Check installed skills against their lock, and scan them by today's rules."""
    found = with_hub(surface, lambda hub, _: look_again(hub, str(current_folder()), everything=everything))
    if not as_json(found):
        _say_audited(found)
    return Exit.FAILED if any(each.grave for each in found) else Exit.OK


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
    if as_json({**told, "patch": str(patch), "pushed": made.pushed}):
        return
    where = f"The branch `{made.branch}` is at {target}" if made.pushed else f"The branch would be `{made.branch}`"
    say(f"`{name}` as {made.path} on {made.base[:12]}: {patch}")
    say(f"{where}; `git am {patch.name}` applies the patch.")


def _target(sources: Sources, text: str) -> Tap:
    known = {tap.name: tap for tap in sources.taps.all()}
    return known[text] if text in known else Tap(name=text, url=address_of(text).url)


def _author(text: str) -> tuple[str, str]:
    found = AUTHOR.fullmatch(text.strip())
    if found is None:
        raise HubError(f"`{text}` is not an author: 'Name <mail>'.")
    return found[1].strip(), found[2].strip()


def _code(outcomes: list[Outcome]) -> int:
    return Exit.OK if all(each.ok for each in outcomes) else Exit.FAILED


def _marks(found: Standing) -> str:
    return ", ".join(word for word, said in (("pinned", found.pinned), ("changed by you", found.changed)) if said)


def _say_audited(found: list[Audited]) -> None:
    rows = [
        (each.name, each.owner, "yes" if each.intact else "NO", each.commit[:12] or "-", each.source) for each in found
    ]
    say(table(rows, ("SKILL", "OWNER", "INTACT", "COMMIT", "FROM")) if rows else "No skill is installed.")
    for each in found:
        for words in each.grave:
            remark(f"{each.name}: {words}")
        for words in each.notes:
            remark(f"{each.name}: note: {words}")
