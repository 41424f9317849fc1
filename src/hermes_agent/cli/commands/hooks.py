"""Subcommand `hermes hooks`: list, allow, revoke and test user-defined event hooks."""

from __future__ import annotations

import asyncio
import sys

import click
import msgspec

from hermes_agent.app.hooks import CONSENTS, EVENTS, Consents, Known, known_hooks, run_hook
from hermes_agent.cli.output import say, say_json, show, table
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.errors import ConfigError
from hermes_agent.sandbox.jail import scrubbed


@click.group(short_help="List hooks, and choose which may run.")
def hooks() -> None:
    """Your programs that run on events: section `hooks` of config.yaml. A hook runs only with your consent, and a
    changed one needs it again."""


@hooks.command("list")
@pass_surface
def list_(surface: Surface) -> None:
    """List the hooks and their consent."""
    found = known_hooks(surface.loaded.value.hooks, surface.home.root)
    rows = [(each.name, ", ".join(each.hook.on), each.hook.command or each.hook.python, _state(each)) for each in found]
    nothing = "There are no hooks. docs/hooks.md shows one."
    show(found, lambda _: table(rows, ("HOOK", "ON", "RUNS", "STATE")), nothing=nothing)


@hooks.command()
@click.argument("name")
@pass_surface
def allow(surface: Surface, name: str) -> None:
    """Allow a hook with its present content."""
    found = _find(surface, name)
    if found.problem:
        raise ConfigError(found.problem)
    Consents(surface.home.ensure().root / CONSENTS).give(name, found.mark)
    say(f"{name} may run: {found.hook.command or found.hook.python}", hook=name, allowed=True)


@hooks.command()
@click.argument("name")
@pass_surface
def revoke(surface: Surface, name: str) -> None:
    """Revoke a hook's consent."""
    taken = Consents(surface.home.root / CONSENTS).take_back(name)
    say(f"{name} is no longer allowed." if taken else f"{name} was not allowed.", hook=name, allowed=False)


@hooks.command()
@click.argument("name")
@click.argument("event", type=click.Choice(sorted(EVENTS)))
@pass_surface
def test(surface: Surface, name: str, event: str) -> None:
    """Run a hook that is allowed, with the JSON on standard input as the event's facts, and show its answer."""
    found = _find(surface, name)
    if not found.allowed:
        raise ConfigError(
            found.problem or f"{name} is not allowed with its present content: `hermes hooks allow {name}`."
        )
    facts = msgspec.json.decode(sys.stdin.buffer.read() or b"{}", type=dict[str, object])
    variables = {**scrubbed(surface.variables), "HERMES_HOME": str(surface.home.root)}
    say_json(asyncio.run(run_hook(found.hook, {"event": event, **facts}, surface.home.root, variables)))


def _find(surface: Surface, name: str) -> Known:
    known = {each.name: each for each in known_hooks(surface.loaded.value.hooks, surface.home.root)}
    if name not in known:
        raise ConfigError(f"There is no hook `{name}`. There are: {', '.join(known) or 'none'}.")
    return known[name]


def _state(known: Known) -> str:
    return known.problem or ("allowed" if known.allowed else "waits for your consent")
