"""Subcommand `hermes skills`: read skills, show their history and undo changes; hub commands are in `cli/skills/`."""

from __future__ import annotations

from functools import partial

import click
import msgspec

from hermes_agent.app.operations import skills as operations
from hermes_agent.cli.commands.verbs import group_of
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import columns, remark, say, shortened, show
from hermes_agent.cli.picker_choices import edit as edit_in_editor
from hermes_agent.cli.skills import hub
from hermes_agent.cli.skills.shelf import with_hub
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.clock import moment
from hermes_agent.skills.changes import ARCHIVE, By
from hermes_agent.skills.hub.installing import Hub

NAME = click.argument("name")
NO_CHANGE = "Nothing was changed about `{}`."

skills = group_of(operations.SKILLS)
for _command in (hub.tap, hub.search, hub.browse, hub.inspect, hub.install, hub.uninstall):
    skills.add_command(_command)
for _command in (hub.check, hub.update, hub.audit, hub.publish):
    skills.add_command(_command)


@skills.command("list")
@click.option("--family", default="", metavar="NAME", help="Only this family.")
@pass_surface
def list_(surface: Surface, family: str) -> None:
    """List the skills for this folder, and broken ones."""
    rows, broken = ask(surface, partial(operations.skill_rows, family=family))
    listed = columns(
        SKILL=lambda each: f"{each.name}{' *' * each.pinned}",
        LAYER="layer",
        OWNER="owner",
        FAMILY="family",
        DOES=lambda each: shortened(each.description, 70),
    )
    notes = (f"{where}: {problem}" for where, problem in broken)
    show(rows, listed, nothing="There are no skills.", notes=notes)


@skills.command("show")
@NAME
@pass_surface
def show_(surface: Surface, name: str) -> None:
    """Print SKILL.md, and the skills of the same name that it hides."""

    found = ask(surface, partial(operations.read_skill, name=name))
    header = found.header
    say(found.skill.text.rstrip("\n"), name=name, layer=header.layer.value, folder=str(header.folder))
    hidden = (f"It hides another of that name: {each.folder} ({each.layer.value})" for each in found.hidden)
    commands = (f"Runs where it is trusted: {command}" for command in found.commands)
    remark("\n".join((f"{header.folder} ({header.layer.value})", *hidden, *commands)))


@skills.command()
@NAME
@pass_surface
def edit(surface: Surface, name: str) -> None:
    """Open a skill in $EDITOR; the change is kept as yours."""
    before = ask(surface, partial(operations.read_skill, name=name)).skill.text
    after = edit_in_editor(before)
    version = ask(surface, partial(operations.edit_skill, name=name, after=after, before=before)) if after else 0
    say(f"`{name}`: version {version}." if version else f"`{name}` is as it was.", name=name, version=version)


@skills.command()
@NAME
@pass_surface
def history(surface: Surface, name: str) -> None:
    """List the versions of a skill, the newest first."""

    found = [
        {
            "version": str(version.id),
            "when": moment(change.at),
            "action": change.action,
            "by": change.author.value,
            "file": change.item,
            "session": change.session or "-",
        }
        for version in ask(surface, partial(operations.skill_versions, name=name))
        for change in (version.change,)
    ]
    show(found, columns(**{key.upper(): key for key in found[0]}) if found else "", nothing=NO_CHANGE.format(name))


@skills.command()
@click.argument("name")
@pass_surface
def restore(surface: Surface, name: str) -> None:
    """Restore an archived or uninstalled skill."""

    async def act(found: Hub, by: By) -> None:
        async with found.alone():
            back = await found.restore(name, by)
        if not back or (found.home / ARCHIVE / name).is_dir():
            await found.writer.restore(name, by)

    with_hub(surface, act)
    say(f"`{name}` is back.", name=name)


@skills.command()
@pass_surface
def stats(surface: Surface) -> None:
    """Show how often skills were viewed, used and changed."""

    found = ask(surface, operations.skill_usage)
    plain = [{"name": name, **msgspec.structs.asdict(used)} for name, used in found.items()]
    heads = {"SKILL": "name", "VIEWS": "views", "USES": "uses", "PATCHES": "patches"}
    listed = columns((1, 2, 3), **heads, LAST=lambda each: moment(each["last"]))
    show(plain, listed, nothing="No skill was used yet.")
