"""`hermes skills`: read skills, their history, and take changes back; those of repositories stand in `cli/skills/`."""

from __future__ import annotations

import asyncio

import click
import msgspec

from hermes_agent.app.skills import Skills
from hermes_agent.cli.output import remark, say, say_json, shortened, table
from hermes_agent.cli.skills.following import audit, check, publish, update
from hermes_agent.cli.skills.hub import browse, inspect, install, search, uninstall
from hermes_agent.cli.skills.shelf import JSON, SKILL, by_owner, with_hub, with_skills
from hermes_agent.cli.skills.tap import tap
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.time_format import moment
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import current_folder
from hermes_agent.skills.changes import ARCHIVE
from hermes_agent.skills.hub.installing import Hub
from hermes_agent.skills.invoke import commands_of, hash_of
from hermes_agent.skills.state import Used
from hermes_agent.skills.versions import diff_of, diffs, own_files
from hermes_agent.skills.writing import Writer

NAME = click.argument("name", type=SKILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One skill as a person sees it in a list."""

    name: str
    layer: str
    owner: str
    family: str
    pinned: bool
    description: str


@click.group(short_help="Read, install and update skills, and take changes back.")
def skills() -> None:
    """Read skills, pin them, put them aside, and take changes of them back; find and install others."""


for _command in (tap, search, browse, inspect, install, check, update, uninstall, audit, publish):
    skills.add_command(_command)


@skills.command("list")
@click.option("--family", default="", metavar="NAME", help="Only this family.")
@JSON
@pass_surface
def list_(surface: Surface, family: str, as_json: bool) -> None:
    """List the skills that this folder sees, and those that cannot be used."""
    here = str(current_folder())

    async def act(kept: Skills, writer: Writer) -> tuple[list[Row], list[tuple[str, str]]]:
        pinned = kept.library.state.get().pinned
        rows = []
        for header in await kept.library.all(here, family=family, limit=100_000):
            owner = (await writer.owner(header)).value
            rows.append(
                Row(
                    name=header.name,
                    layer=header.layer.value,
                    owner=owner,
                    family=header.family,
                    pinned=header.name in pinned,
                    description=header.description,
                )
            )
        return rows, await kept.library.broken(here)

    rows, broken = with_skills(surface, act)
    if as_json:
        say_json(rows)
        return
    shown = [
        (
            f"{each.name}{' *' if each.pinned else ''}",
            each.layer,
            each.owner,
            each.family,
            shortened(each.description, 70),
        )
        for each in rows
    ]
    say(table(shown, ("SKILL", "LAYER", "OWNER", "FAMILY", "DOES")) if shown else "There are no skills.")
    for folder, problem in broken:
        remark(f"{folder}: {problem}")


@skills.command()
@NAME
@pass_surface
def show(surface: Surface, name: str) -> None:
    """Print SKILL.md as it stands, and what it hides."""

    async def act(kept: Skills, _: Writer) -> None:
        header = await kept.library.find(name, str(current_folder()))
        skill = await kept.library.read(header)
        say(skill.text.rstrip("\n"))
        remark(f"{header.folder} ({header.layer.value})")
        for other in (await kept.library.same_name(name, str(current_folder())))[1:]:
            remark(f"It hides another of that name: {other.folder} ({other.layer.value})")
        for command in commands_of(skill):
            remark(f"Runs where it is trusted: {command}")

    with_skills(surface, act)


@skills.command()
@NAME
@JSON
@pass_surface
def history(surface: Surface, name: str, as_json: bool) -> None:
    """List the versions of a skill, the newest first."""

    async def act(kept: Skills, writer: Writer) -> list[tuple[str, ...]]:
        await _notice(kept, writer, name)
        return [
            (str(version.id), moment(change.at), change.action, change.author.value, change.item, change.session or "-")
            for version in await writer.versions.history(name)
            for change in (version.change,)
        ]

    rows = with_skills(surface, act)
    heads = ("VERSION", "WHEN", "ACTION", "BY", "FILE", "SESSION")
    if as_json:
        say_json([dict(zip(map(str.lower, heads), row, strict=True)) for row in rows])
    else:
        say(table(rows, heads) if rows else f"Nothing was changed about `{name}`.")


@skills.command()
@NAME
@click.argument("version", type=int, required=False)
@pass_surface
def diff(surface: Surface, name: str, version: int | None) -> None:
    """Show what a version changed; without one, what the newest changed."""

    async def act(kept: Skills, writer: Writer) -> str:
        await _notice(kept, writer, name)
        found = await writer.versions.history(name)
        chosen = next((each for each in found if version in (None, each.id)), None)
        if chosen is None:
            raise HermesError(f"`{name}` has no such version: `hermes skills history {name}` lists them.")
        return diff_of(chosen.change.item, chosen.change.before, chosen.change.after)

    say(with_skills(surface, act).rstrip("\n"))


@skills.command()
@NAME
@click.argument("version", type=int)
@pass_surface
def revert(surface: Surface, name: str, version: int) -> None:
    """Make every file of a skill what it was after a version, to the byte."""

    async def act(kept: Skills, writer: Writer) -> str:
        await _notice(kept, writer, name)
        before = {
            f"{name}/{path.relative_to(kept.home / name)}": path.read_bytes() for path in own_files(kept.home / name)
        }
        await writer.revert(name, version, by_owner())
        after = {
            f"{name}/{path.relative_to(kept.home / name)}": path.read_bytes() for path in own_files(kept.home / name)
        }
        return diffs(before, after)

    changed = with_skills(surface, act)
    say(changed.rstrip("\n") if changed else f"`{name}` is as it was after version {version} already.")


@skills.command()
@NAME
@click.option("--off", is_flag=True, help="Take the pin off.")
@pass_surface
def pin(surface: Surface, name: str, off: bool) -> None:
    """Show a skill in every new prompt, and let nobody but you change it unasked."""

    async def act(kept: Skills, _: Writer) -> None:
        await kept.library.find(name, str(current_folder()))
        others = tuple(each for each in kept.library.state.get().pinned if each != name)
        pinned = others if off else (*others, name)
        await kept.library.state.change(lambda state: msgspec.structs.replace(state, pinned=pinned))

    with_skills(surface, act)
    say(f"`{name}` is {'no longer ' if off else ''}pinned, from the next session on.")


@skills.command()
@NAME
@click.option("--off", is_flag=True, help="Trust it no longer.")
@pass_surface
def trust(surface: Surface, name: str, off: bool) -> None:
    """Let a skill run the commands in its text, as long as the text stays as it is."""

    async def act(kept: Skills, _: Writer) -> list[str]:
        skill = await kept.library.read(await kept.library.find(name, str(current_folder())))
        others = {key: value for key, value in kept.library.state.get().trusted.items() if key != name}
        trusted = others if off else {**others, name: hash_of(skill)}
        await kept.library.state.change(lambda state: msgspec.structs.replace(state, trusted=trusted))
        return commands_of(skill)

    commands = with_skills(surface, act)
    told = "; ".join(commands) or "nothing, it holds no commands"
    say(f"`{name}` {'may no longer' if off else 'may now'} run: {told}")


@skills.command()
@NAME
@pass_surface
def copy(surface: Surface, name: str) -> None:
    """Copy a bundled, installed or external skill into the home, to be changed there. Updates are merged into it."""
    done = with_skills(surface, lambda _, writer: writer.copy(name, by_owner()))
    say(f"`{name}` is yours to change: {done.folder}")


@skills.command()
@NAME
@pass_surface
def archive(surface: Surface, name: str) -> None:
    """Put a skill aside. Nothing of it is lost."""
    with_skills(surface, lambda _, writer: writer.archive(name, by_owner()))
    say(f"`{name}` is put aside; `hermes skills restore {name}` brings it back.")


@skills.command()
@click.argument("name")
@pass_surface
def restore(surface: Surface, name: str) -> None:
    """Bring a skill back that was put aside or uninstalled."""

    async def act(hub: Hub) -> None:
        async with hub.alone():
            back = await hub.restore(name, by_owner())
        if not back or (hub.home / ARCHIVE / name).is_dir():
            await hub.writer.restore(name, by_owner())

    with_hub(surface, act)
    say(f"`{name}` is back.")


@skills.command()
@JSON
@pass_surface
def stats(surface: Surface, as_json: bool) -> None:
    """Show how often skills were looked at, used and changed."""

    async def act(kept: Skills, _: Writer) -> dict[str, Used]:
        return await asyncio.to_thread(kept.usage.all)

    found = with_skills(surface, act)
    if as_json:
        say_json([{"name": name, **msgspec.structs.asdict(used)} for name, used in sorted(found.items())])
        return
    rows = [
        (name, str(used.views), str(used.uses), str(used.patches), moment(used.last))
        for name, used in sorted(found.items())
    ]
    say(
        table(rows, ("SKILL", "VIEWS", "USES", "PATCHES", "LAST"), right=(1, 2, 3))
        if rows
        else "No skill was used yet."
    )


async def _notice(_: Skills, writer: Writer, name: str) -> None:
    await writer.notice(name, str(current_folder()))
