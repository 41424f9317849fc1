"""Subcommand `hermes bundles`: create, list, show and delete bundles of skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.operations.skills import open_skills
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import remark, say, show, table
from hermes_agent.cli.skills.shelf import JSON, SKILL, Names
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.host.paths import current_folder
from hermes_agent.skills.invoke import BadBundle, Bundle, Bundles, bundles_of

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem

BUNDLE = Names("bundle", lambda home: bundles_of(home).names())
NAME = click.argument("name", type=BUNDLE)


@click.group(short_help="Group skills that are used by one name.")
def bundles() -> None:
    """Group skills: `/NAME words` and `-s NAME` use all skills of a bundle."""


@bundles.command("list")
@JSON
@pass_surface
def list_(surface: Surface, as_json: bool) -> None:
    """List the bundles."""
    kept = _kept(surface)
    found: list[Bundle] = []
    for name in kept.names():
        try:
            found.append(kept.there(name))
        except BadBundle as error:
            remark(str(error))
    rows = [(each.name, ", ".join(each.skills), each.description) for each in found]
    listed = table(rows, ("BUNDLE", "SKILLS", "DOES")) if rows else "There are no bundles."
    show(found, lambda _: listed, as_json=as_json)


@bundles.command("show")
@NAME
@JSON
@pass_surface
def show_(surface: Surface, name: str, as_json: bool) -> None:
    """Show one bundle."""
    found = _kept(surface).there(name)
    lines = [f"/{found.name}: {found.description}".rstrip(": "), *(f"- {skill}" for skill in found.skills)]
    show(found, lambda _: "\n".join([*lines, *filter(None, [found.instruction])]), as_json=as_json)


@bundles.command()
@click.argument("name")
@click.argument("skills", nargs=-1, required=True, type=SKILL)
@click.option("--description", default="", help="What it is for.")
@click.option("--instruction", default="", help="Text to put after the skills.")
@pass_surface
def create(surface: Surface, name: str, skills: tuple[str, ...], description: str, instruction: str) -> None:
    """Create a bundle of skills, or replace the one with that name."""

    async def check(access: Access[HomeSystem]) -> None:
        async with open_skills(access) as shelf:
            for skill in skills:
                await shelf.kept.library.find(skill, str(current_folder()))

    ask(surface, check)
    bundle = Bundle(name=name, skills=skills, description=description, instruction=instruction)
    path = _kept(surface).put(bundle)
    say(f"`/{name}` uses {', '.join(skills)} ({path}).")
    if name in COMMANDS:
        remark(f"`/{name}` is a command, so the bundle has no slash of its own; `-s {name}` uses it.")


@bundles.command()
@NAME
@pass_surface
def delete(surface: Surface, name: str) -> None:
    """Delete a bundle. Its skills stay."""
    _kept(surface).remove(name)
    say(f"The bundle `{name}` is deleted; its skills stay.")


def _kept(surface: Surface) -> Bundles:
    return bundles_of(surface.home.skills)
