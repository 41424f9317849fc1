"""`hermes memory facts`: what the memory `holographic` knows, its changes, and taking them back."""

from __future__ import annotations

import click

from hermes_agent.app.household import local_owner
from hermes_agent.cli.output import remark, say, say_json
from hermes_agent.cli.session_lookup import with_store
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.time_format import moment
from hermes_agent.core.clock import SystemClock
from hermes_agent.store.facts.facts import Source
from hermes_agent.store.versions import Author


@click.group(short_help="The facts of the memory `holographic`.")
def facts() -> None:
    """Show, judge and take back the facts that the memory `holographic` keeps."""


@facts.command("show")
@click.option("-n", "--limit", default=100, show_default=True, type=click.IntRange(1), help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def show(surface: Surface, limit: int, as_json: bool) -> None:
    """Show the facts in force, everybody's, the newest first: trust, who told them, from which messages."""
    found = with_store(surface, lambda store: store.known_facts.in_force(limit=limit))
    if as_json:
        say_json(found)
    elif not found:
        remark("No facts are known.")
    for fact in () if as_json else found:
        source = fact.source
        who = f"{source.author.value} {source.principal}".strip()
        where = f"  {source.session} {source.first}-{source.last}" if source.session else ""
        say(f"{fact.id}  {moment(fact.added)}  trust {fact.trust:.2f}  {fact.space}  {who}{where}")
        say(f"    {fact.text}")


@facts.command("log")
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def log(surface: Surface, limit: int, as_json: bool) -> None:
    """Show every change, the newest first; `-` stands for a fact that is not in force."""
    found = with_store(surface, lambda store: store.known_facts.log(limit=limit))
    if as_json:
        say_json(found)
    elif not found:
        remark("No facts are known.")
    for change in () if as_json else found:
        undoes = f" of {change.undoes}" if change.undoes else ""
        trust = " to ".join("-" if each is None else f"{each:.2f}" for each in (change.before, change.after))
        who = f"{change.source.author.value} {change.source.principal}".strip()
        say(f"{change.id}  {moment(change.at)}  fact {change.fact}  {change.action.value}{undoes}  {trust}  {who}")
        say(f"    {change.text}")


@facts.command("retract")
@click.argument("fact", type=int)
@pass_surface
def retract(surface: Surface, fact: int) -> None:
    """Take a fact out of force: it is not recalled any more. It is kept, and `undo` puts it back."""
    by, now = _owner(), SystemClock().now()
    found = with_store(surface, lambda store: store.known_facts.retract("", fact, by, now))
    say(f"Fact {fact} is retracted: {found.text}")


@facts.command("undo")
@click.argument("change", type=int)
@pass_surface
def undo(surface: Surface, change: int) -> None:
    """Take back the change of that number (`hermes memory facts log`)."""
    by, now = _owner(), SystemClock().now()
    made = with_store(surface, lambda store: store.known_facts.undo("", change, by, now))
    say(f"Change {change} of fact {made.fact} ({made.action.value}) is taken back.")


def _owner() -> Source:
    return Source(author=Author.OWNER, principal=local_owner().key)
