"""Subcommand `hermes skills`: read skills, show their history and undo changes; hub commands are in `cli/skills/`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click
import msgspec

from hermes_agent.app.operations import skills as operations
from hermes_agent.cli.commands.verbs import group_of
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import remark, say, shortened, show, table, wants_json
from hermes_agent.cli.skills.following import audit, check, publish, update
from hermes_agent.cli.skills.hub import browse, inspect, install, search, tap, uninstall
from hermes_agent.cli.skills.shelf import with_hub
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.clock import moment
from hermes_agent.skills.changes import ARCHIVE, By
from hermes_agent.skills.hub.installing import Hub

NAME = click.argument("name")


skills = group_of(operations.SKILLS)
for _command in (tap, search, browse, inspect, install, check, update, uninstall, audit, publish):
    skills.add_command(_command)


@skills.command("list")
@click.option("--family", default="", metavar="NAME", help="Only this family.")
@pass_surface
def list_(surface: Surface, family: str) -> None:
    """List the skills for this folder, and broken ones."""
    rows, broken = ask(surface, partial(operations.skill_rows, family=family))
    show(rows, _listed)
    for where, problem in () if wants_json() else broken:
        remark(f"{where}: {problem}")


def _listed(rows: Sequence[operations.SkillRow]) -> str:
    cells = [
        (f"{each.name}{' *' * each.pinned}", each.layer, each.owner, each.family, shortened(each.description, 70))
        for each in rows
    ]
    return table(cells, ("SKILL", "LAYER", "OWNER", "FAMILY", "DOES")) if rows else "There are no skills."


@skills.command("show")
@NAME
@pass_surface
def show_(surface: Surface, name: str) -> None:
    """Print SKILL.md, and the skills of the same name that it hides."""

    found = ask(surface, partial(operations.read_skill, name=name))
    header = found.header
    say(found.skill.text.rstrip("\n"), name=name, layer=header.layer.value, folder=str(header.folder))
    remark(f"{header.folder} ({header.layer.value})")
    for other in found.hidden:
        remark(f"It hides another of that name: {other.folder} ({other.layer.value})")
    for command in found.commands:
        remark(f"Runs where it is trusted: {command}")


@skills.command()
@NAME
@pass_surface
def edit(surface: Surface, name: str) -> None:
    """Open a skill in $EDITOR; the change is kept as yours."""
    before = ask(surface, partial(operations.read_skill, name=name)).skill.text
    after = click.edit(before, extension=".md")
    version = ask(surface, partial(operations.edit_skill, name=name, after=after, before=before)) if after else 0
    say(f"`{name}`: version {version}." if version else f"`{name}` is as it was.", name=name, version=version)


@skills.command()
@NAME
@pass_surface
def history(surface: Surface, name: str) -> None:
    """List the versions of a skill, the newest first."""

    rows = [
        (str(version.id), moment(change.at), change.action, change.author.value, change.item, change.session or "-")
        for version in ask(surface, partial(operations.skill_versions, name=name))
        for change in (version.change,)
    ]
    heads = ("VERSION", "WHEN", "ACTION", "BY", "FILE", "SESSION")
    found = [dict(zip(map(str.lower, heads), row, strict=True)) for row in rows]
    show(found, lambda _: table(rows, heads) if rows else f"Nothing was changed about `{name}`.")


@skills.command()
@click.argument("name")
@pass_surface
def restore(surface: Surface, name: str) -> None:
    """Restore an archived or uninstalled skill."""

    async def act(hub: Hub, by: By) -> None:
        async with hub.alone():
            back = await hub.restore(name, by)
        if not back or (hub.home / ARCHIVE / name).is_dir():
            await hub.writer.restore(name, by)

    with_hub(surface, act)
    say(f"`{name}` is back.", name=name)


@skills.command()
@pass_surface
def stats(surface: Surface) -> None:
    """Show how often skills were viewed, used and changed."""

    found = ask(surface, operations.skill_usage)
    plain = [{"name": name, **msgspec.structs.asdict(used)} for name, used in found.items()]
    rows = [
        (name, str(used.views), str(used.uses), str(used.patches), moment(used.last)) for name, used in found.items()
    ]
    heads = ("SKILL", "VIEWS", "USES", "PATCHES", "LAST")
    show(plain, lambda _: table(rows, heads, right=(1, 2, 3)) if rows else "No skill was used yet.")
