"""Subcommand `hermes hooks`: list, allow, revoke and test user-defined event hooks."""

from __future__ import annotations

import asyncio
import sys
from functools import partial

import click
import msgspec

from hermes_agent.app.hooks import EVENTS, run_hook
from hermes_agent.app.operations.trust import HOOKS, find_hook
from hermes_agent.cli.commands.verbs import group_of
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import say_json
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.errors import ConfigError
from hermes_agent.sandbox.jail import scrubbed

hooks = group_of(HOOKS)


@hooks.command()
@click.argument("name")
@click.argument("event", type=click.Choice(sorted(EVENTS)))
@pass_surface
def test(surface: Surface, name: str, event: str) -> None:
    """Run a hook that is allowed, with the JSON on standard input as the event's facts, and show its answer."""
    found = ask(surface, partial(find_hook, name=name))
    if not found.allowed:
        raise ConfigError(
            found.problem or f"{name} is not allowed with its present content: `hermes hooks allow {name}`."
        )
    facts = msgspec.json.decode(sys.stdin.buffer.read() or b"{}", type=dict[str, object])
    variables = {**scrubbed(surface.variables), "HERMES_HOME": str(surface.home.root)}
    say_json(asyncio.run(run_hook(found.hook, {"event": event, **facts}, surface.home.root, variables)))
