"""`hermes curator`: the upkeep of the skills that the agent made, seen, started, stopped and taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from hermes_agent.app.learning.curating import Curating
from hermes_agent.app.opening import open_system
from hermes_agent.cli.output import remark, say, say_json, table
from hermes_agent.cli.skills.shelf import JSON, SKILL
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.time_format import moment
from hermes_agent.learning.curator.plan import REPORT
from hermes_agent.learning.curator.report import Run, summary

T = TypeVar("T")
NAME = click.argument("name", type=SKILL)
PASS = click.argument("name", metavar="[PASS]", default="")


@click.group(short_help="Look after the skills that the agent made.")
def curator() -> None:
    """Look after the skills that the agent made: what nobody uses is put aside, what overlaps is joined, what is bad is
    mended. What you wrote or pinned is left alone, nothing is deleted, and every pass can be taken back."""


@curator.command()
@JSON
@pass_surface
def status(surface: Surface, as_json: bool) -> None:
    """Show when the next pass is due, and how old and how good each skill is."""
    found = _with(surface, lambda curating: curating.status())
    if as_json:
        say_json(found)
        return
    say(found.when)
    rows = [
        (each.name, each.age or each.why_not, str(each.days), each.grade or "-", "yes" if each.pinned else "")
        for each in found.skills
    ]
    say(table(rows, ("SKILL", "STATE", "UNUSED", "GRADE", "PINNED"), right=(2,)) if rows else "The home has no skills.")
    for line in found.side_rows:
        say(line)


@curator.command()
@click.option("--dry-run", is_flag=True, help="Only look: report what a pass would do.")
@JSON
@pass_surface
def run(surface: Surface, dry_run: bool, as_json: bool) -> None:
    """Begin a pass now. The first one ever only looks."""
    done = _with(surface, lambda curating: curating.run(look=dry_run))
    if as_json:
        say_json(done)
        return
    say(done.summary)
    if done.looks and not dry_run:
        say("The first pass only looks. The next one, now or in a week, does it.")
    remark(f"{surface.home.logs / 'curator' / done.id / REPORT}")


@curator.command()
@pass_surface
def pause(surface: Surface) -> None:
    """Begin no pass until `resume`; `run` still does."""
    _with(surface, lambda curating: curating.pause(True))
    say("The curator is paused.")


@curator.command()
@pass_surface
def resume(surface: Surface) -> None:
    """Let passes begin by themselves again."""
    _with(surface, lambda curating: curating.pause(False))
    say("The curator goes on.")


@curator.command()
@NAME
@pass_surface
def pin(surface: Surface, name: str) -> None:
    """Leave a skill alone, and name it in every new prompt."""
    _with(surface, lambda curating: curating.pin(name))
    say(f"`{name}` is pinned.")


@curator.command()
@NAME
@pass_surface
def unpin(surface: Surface, name: str) -> None:
    """Take the pin off a skill."""
    _with(surface, lambda curating: curating.pin(name, off=True))
    say(f"`{name}` is no longer pinned.")


@curator.command()
@click.argument("name")
@pass_surface
def restore(surface: Surface, name: str) -> None:
    """Bring back a skill that was put aside; its age counts anew."""
    _with(surface, lambda curating: curating.restore(name))
    say(f"`{name}` is back.")


@curator.command()
@PASS
@JSON
@pass_surface
def rollback(surface: Surface, name: str, as_json: bool) -> None:
    """Take back a pass, the newest that changed something: every skill as it was, to the byte. What somebody changed
    since stays."""
    lines = _with(surface, lambda curating: curating.rollback(name))
    if as_json:
        say_json(lines)
        return
    for line in lines:
        say(line)


@curator.command()
@PASS
@click.option("--list", "listed", is_flag=True, help="List the passes instead.")
@JSON
@pass_surface
def report(surface: Surface, name: str, listed: bool, as_json: bool) -> None:
    """Show what a pass did, the newest without a name; made from what changed."""
    if not listed:
        one = _with(surface, lambda curating: curating.one(name))
        say_json(one) if as_json else say(one.text.rstrip("\n"))
        return
    runs = _with(surface, lambda curating: curating.runs())
    if as_json:
        say_json(runs)
        return
    rows = [(each.id, moment(each.began), _kind(each), summary(each)) for each in runs]
    say(table(rows, ("PASS", "WHEN", "KIND", "WHAT")) if rows else "No pass has ended yet.")


def _kind(run: Run) -> str:
    if run.rolled_back:
        return "rolled back"
    return "looked" if run.looks else "did"


def _with(surface: Surface, act: Callable[[Curating], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_system(surface.home) as runtime:
            return await act(runtime.learner.curating)

    return asyncio.run(run())
