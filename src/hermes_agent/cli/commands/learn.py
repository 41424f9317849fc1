"""`hermes learn`: what was learned, from what, what waits, and taking it back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click

from hermes_agent.app.operations.learning import explain_turn, learned, list_learned, review_now
from hermes_agent.cli.operation import ask_system
from hermes_agent.cli.output import say, say_json
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.time_format import Since

if TYPE_CHECKING:
    from hermes_agent.learning.learned import Learned

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
    if as_json:
        say_json(ask_system(surface, partial(list_learned, limit=limit)))
    else:
        say("\n".join(_with(surface, lambda found: found.log(limit))))


@learn.command("show")
@NAME
@pass_surface
def show_(surface: Surface, name: str) -> None:
    """Show a change, or what waits, whole: who, from which messages, at what cost, and the words."""
    say(_with(surface, lambda found: found.show(name)))


@learn.command()
@NAME
@pass_surface
def diff(surface: Surface, name: str) -> None:
    """Show what a change changed, or what waits would write."""
    say(_with(surface, lambda found: found.diff(name)))


@learn.command()
@click.argument("name", metavar="[ID]", default="")
@pass_surface
def undo(surface: Surface, name: str) -> None:
    """Take a change back: to the byte where nothing came after it. Without an ID, the newest that no person made."""
    say(ask_system(surface, lambda access: learned(access).undo(name, access.who.key)))


@learn.command()
@click.argument("turn", type=int)
@click.option("--session", default="", metavar="ID", help="Of this conversation instead of the latest.")
@pass_surface
def why(surface: Surface, turn: int, session: str) -> None:
    """Say what that was learned a turn of a conversation went by."""

    say("\n".join(ask_system(surface, partial(explain_turn, turn=turn, session=session))))


@learn.command()
@NAME
@pass_surface
def approve(surface: Surface, name: str) -> None:
    """Say yes to what waits: it is live, on top of what came since."""
    say(_with(surface, lambda found: found.approve(name)))


@learn.command()
@NAME
@pass_surface
def reject(surface: Surface, name: str) -> None:
    """Say no to what waits."""
    say(_with(surface, lambda found: found.reject(name)))


@learn.command()
@click.option("--since", type=Since(), default=0.0, help="Only since then: 24h, 7d, or a date.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def stats(surface: Surface, since: float, as_json: bool) -> None:
    """Show what learning used and what it brought."""
    if as_json:
        say_json(_with(surface, lambda found: found.brought(since)))
    else:
        say("\n".join(_with(surface, lambda found: found.stats(since))))


@learn.command()
@pass_surface
def review(surface: Surface) -> None:
    """Review the conversations that are in line, now."""

    say("\n".join(ask_system(surface, review_now)))


def _with(surface: Surface, act: Callable[[Learned], Awaitable[T]]) -> T:
    return ask_system(surface, lambda access: act(learned(access)))
