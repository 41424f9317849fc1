"""Subcommand `hermes bundles`: add, list, show and remove bundles of skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.operations.skills import open_skills
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import remark, say, show, table
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.host.paths import current_folder
from hermes_agent.skills.invoke import BadBundle, Bundle, Bundles, bundles_of

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem

NAME = click.argument("name")


@click.group(short_help="Group skills that are used by one name.")
def bundles() -> None:
    """Group skills: `/NAME words` and `-s NAME` use all skills of a bundle."""


@bundles.command("list")
@pass_surface
def list_(surface: Surface) -> None:
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
    show(found, lambda _: listed)


@bundles.command("show")
@NAME
@pass_surface
def show_(surface: Surface, name: str) -> None:
    """Show one bundle."""
    found = _kept(surface).there(name)
    lines = [f"/{found.name}: {found.description}".rstrip(": "), *(f"- {skill}" for skill in found.skills)]
    show(found, lambda _: "\n".join([*lines, *filter(None, [found.instruction])]))


@bundles.command()
@click.argument("name")
@click.argument("skills", nargs=-1, required=True)
@click.option("--description", default="", help="What it is for.")
@click.option("--instruction", default="", help="Text to put after the skills.")
@pass_surface
def add(surface: Surface, name: str, skills: tuple[str, ...], description: str, instruction: str) -> None:
    """Add a bundle of skills, or replace the one with that name."""

    async def check(access: Access[HomeSystem]) -> None:
        async with open_skills(access) as shelf:
            for skill in skills:
                await shelf.kept.library.find(skill, str(current_folder()))

    ask(surface, check)
    bundle = Bundle(name=name, skills=skills, description=description, instruction=instruction)
    path = _kept(surface).put(bundle)
    say(f"`/{name}` uses {', '.join(skills)} ({path}).", bundle=name, skills=skills)
    if name in COMMANDS:
        remark(f"`/{name}` is a command, so the bundle has no slash of its own; `-s {name}` uses it.")


@bundles.command()
@NAME
@pass_surface
def remove(surface: Surface, name: str) -> None:
    """Remove a bundle. Its skills stay."""
    _kept(surface).remove(name)
    say(f"The bundle `{name}` is removed; its skills stay.", bundle=name)


def _kept(surface: Surface) -> Bundles:
    return bundles_of(surface.home.skills)
