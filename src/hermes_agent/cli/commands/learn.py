"""`hermes learn`: what was learned, from what, what waits, and taking it back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from hermes_agent.app.household import local_owner
from hermes_agent.app.opening import open_system
from hermes_agent.app.system import System
from hermes_agent.cli.output import say, say_json
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.time_format import Since
from hermes_agent.learning.learned import Learned
from hermes_agent.store.learning.proposals import Proposal
from hermes_agent.store.versions import Version

T = TypeVar("T")
NAME = click.argument("name", metavar="ID")


@click.group(short_help="See, judge and take back what was learned.")
def learn() -> None:
    """See, judge and take back what was learned: changes by number (`12`), what waits by name (`p3`)."""


@learn.command()
@click.option("--limit", default=20, show_default=True, help="So many changes at most.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def log(surface: Surface, limit: int, as_json: bool) -> None:
    """List what waits, then the newest changes."""
    if not as_json:
        _print(_with(surface, lambda learned: learned.log(limit)))
        return

    async def rows(learned: Learned) -> list[dict[str, object]]:
        return [*map(_waiting, await learned.waiting()), *map(_change, await learned.versions(limit))]

    say_json(_with(surface, rows))


@learn.command()
@NAME
@pass_surface
def show(surface: Surface, name: str) -> None:
    """Show a change, or what waits, whole: who, from which messages, at what cost, and the words."""
    say(_with(surface, lambda learned: learned.show(name)))


@learn.command()
@NAME
@pass_surface
def diff(surface: Surface, name: str) -> None:
    """Show what a change changed, or what waits would write."""
    say(_with(surface, lambda learned: learned.diff(name)))


@learn.command()
@click.argument("name", metavar="[ID]", default="")
@pass_surface
def undo(surface: Surface, name: str) -> None:
    """Take a change back: to the byte where nothing came after it. Without an ID, the newest that no person made."""
    say(_with(surface, lambda learned: learned.undo(name, local_owner().key)))


@learn.command()
@click.argument("turn", type=int)
@click.option("--session", default="", metavar="ID", help="Of this conversation instead of the latest.")
@pass_surface
def why(surface: Surface, turn: int, session: str) -> None:
    """Say what that was learned a turn of a conversation went by."""

    async def act(learned: Learned) -> list[str]:
        sessions = learned.store.sessions
        found = await sessions.find(session) if session else next(iter(await sessions.list(limit=1)), None)
        return await learned.why(found.id if found else "", turn)

    _print(_with(surface, act))


@learn.command()
@NAME
@pass_surface
def approve(surface: Surface, name: str) -> None:
    """Say yes to what waits: it is live, on top of what came since."""
    say(_with(surface, lambda learned: learned.approve(name)))


@learn.command()
@NAME
@pass_surface
def reject(surface: Surface, name: str) -> None:
    """Say no to what waits."""
    say(_with(surface, lambda learned: learned.reject(name)))


@learn.command()
@click.option("--since", type=Since(), default=0.0, help="Only since then: 24h, 7d, or a date.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def stats(surface: Surface, since: float, as_json: bool) -> None:
    """Show what learning used and what it brought."""
    if as_json:
        say_json(_with(surface, lambda learned: learned.brought(since)))
        return
    _print(_with(surface, lambda learned: learned.stats(since)))


@learn.command()
@pass_surface
def review(surface: Surface) -> None:
    """Review the conversations that are in line, now."""

    async def act(runtime: System) -> list[str]:
        done = await runtime.learner.run()
        jobs = (await runtime.store.learning.list(limit=done))[::-1] if done else []
        told = [f"{job.kind.value} of {job.session}: {job.account.note}" for job in jobs if job.account.note]
        return told or ["Nothing is in line."]

    _print(_opened(surface, act))


def _with(surface: Surface, act: Callable[[Learned], Awaitable[T]]) -> T:
    return _opened(surface, lambda runtime: act(runtime.learner.learned))


def _opened(surface: Surface, act: Callable[[System], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_system(surface.home) as runtime:
            return await act(runtime)

    return asyncio.run(run())


def _print(lines: list[str]) -> None:
    for line in lines:
        say(line)


def _change(version: Version) -> dict[str, object]:
    change = version.change
    return {
        "id": str(version.id),
        "at": change.at,
        "kind": change.kind.value,
        "item": change.item,
        "action": change.action,
        "author": change.author.value,
        "session": change.session,
        "undoes": change.undoes,
        "cost": change.cost,
    }


def _waiting(proposal: Proposal) -> dict[str, object]:
    return {
        "id": proposal.name,
        "at": proposal.at,
        "kind": proposal.kind.value,
        "item": proposal.item,
        "action": proposal.action,
        "why": proposal.why.value,
        "taint": proposal.taint,
        "session": proposal.session,
        "expires": proposal.expires,
    }
