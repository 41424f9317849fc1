"""`hermes gateway`: your agent on chat platforms."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from hermes_agent.cli.opened import with_store
from hermes_agent.cli.output import announce, remark, say, say_json, table
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.cli.taped import tape_of
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import ConfigError, HermesError, HomeError
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.gateway.state import GatewayState, forget_state, read_state, write_state
from hermes_agent.host.late import late
from hermes_agent.host.loops import run as run_loop
from hermes_agent.host.loops import told_to_end
from hermes_agent.store.database import Store

if TYPE_CHECKING:
    from hermes_agent.gateway.channel import Kind
    from hermes_agent.gateway.server import Gateway

API = "hermes_agent.api.server:api_server"
KEYS = "hermes_agent.api.keys:open_keys"
STANDING = "hermes_agent.api.serve:standing_by"
OPTIONS = "hermes_agent.app.wiring:Options"
UNIT = """[Unit]
Description=Hermes gateway
After=network-online.target

[Service]
ExecStart={program} gateway run
Environment=HERMES_HOME={home}
Restart=always
RestartSec=5
TimeoutStopSec=60

[Install]
WantedBy=default.target
"""


@click.group(short_help="Be reachable on chat platforms.")
def gateway() -> None:
    """Be reachable on chat platforms."""


@gateway.command()
@pass_surface
def run(surface: Surface) -> None:
    """Listen and answer until Ctrl-C or SIGTERM. Which channels: section `gateway` of config.yaml; the API too where
    `api.enabled` says so."""
    if (running := read_state(surface.home)) is not None:
        remark(f"A gateway runs on this home already (process {running.pid}); each token is used by one of them.")
    run_loop(_serve(surface))


async def _serve(surface: Surface) -> None:
    home, started = surface.home.ensure(), SystemClock().now()
    opened: list[Gateway] = []

    def changed() -> None:
        with suppress(HomeError):
            write_state(home, started, opened[0].known if opened else {})

    settings = surface.loaded.value
    async with AsyncExitStack() as closing:
        told = closing.enter_context(told_to_end())
        standing, keys = None, None
        if settings.api.enabled:
            keys = late(KEYS)(settings.api, surface.secrets.get)
            standing = late(STANDING)(keys, late(OPTIONS)().standing)
        tape = tape_of(surface.invocation)
        at_work = open_gateway(home, changed=changed, standing=standing, tape=tape)
        opened.append(await closing.enter_async_context(at_work))
        closing.callback(forget_state, home)
        changed()
        if keys is not None:
            place = await closing.enter_async_context(late(API)(opened[0].runtime, keys))
            announce(f"The API answers at {place.url}/v1")
        names = ", ".join(sorted(opened[0].known)) or "no channel: section `gateway.channels` of config.yaml"
        announce(f"The gateway listens on {names}.")
        await told.wait()
        announce("Ending: what runs may finish.")


@gateway.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def status(surface: Surface, as_json: bool) -> None:
    """Show whether it runs, how each channel is, and what waits to be delivered."""
    state, tally = read_state(surface.home), with_store(surface, _tally)
    if as_json:
        say_json({"gateway": state, "outbox": tally})
        return
    if state is None:
        say("No gateway runs on this home. `hermes gateway run` starts one.")
    else:
        since = datetime.fromtimestamp(state.started, UTC).astimezone()
        say(f"The gateway runs as process {state.pid} since {since:%Y-%m-%d %H:%M}.")
        rows = [(name, each.state, str(each.heard), each.ailment) for name, each in state.channels.items()]
        say(table(rows, ("CHANNEL", "STATE", "HEARD", "WRONG")) if rows else "No channel is switched on.")
    say("Outbox: " + (", ".join(f"{count} {name}" for name, count in tally.items()) or "empty"))


@gateway.command()
@pass_surface
def stop(surface: Surface) -> None:
    """End the gateway of this home; what runs may finish first."""
    state = _running(surface)
    os.kill(state.pid, signal.SIGTERM)
    remark(f"Process {state.pid} was asked to end.")


@gateway.command()
@click.argument("channel", required=False, default="")
def setup(channel: str) -> None:
    """Say step by step how a channel is set up."""
    if not channel:
        say("\n".join(f"hermes gateway setup {name}" for name in CHANNELS))
        return
    if channel not in CHANNELS:
        raise ConfigError(f"There is no channel `{channel}`. There are: {', '.join(CHANNELS)}.")
    kind: Kind = late(CHANNELS[channel])
    steps = [*kind.setup, f"Switch it on: `hermes config set gateway.channels.{channel}.enabled true`."]
    say("\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1)))


@gateway.command()
@pass_surface
def install(surface: Surface) -> None:
    """Print a systemd unit that keeps the gateway running."""
    say(UNIT.format(program=f"{sys.executable} -m hermes_agent", home=surface.home.root).rstrip())


def _running(surface: Surface) -> GatewayState:
    state = read_state(surface.home)
    if state is None:
        raise HermesError("No gateway runs on this home.")
    return state


async def _tally(store: Store) -> dict[str, int]:
    tally = await store.outbox.tally()
    return {**tally.states, **({"perhaps twice": tally.repeated} if tally.repeated else {})}
