"""Subcommand `hermes gateway`: run, start, stop, inspect and install the gateway for chat platforms."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import click

from hermes_agent.app.operations import chats
from hermes_agent.cli.commands.logs import log_options, show_log
from hermes_agent.cli.commands.setup import Questions, found_models
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.gateway import starting, unit
from hermes_agent.cli.gateway.serving import RELOAD, serve, serve_again
from hermes_agent.cli.gateway.setting_up import set_up, start as start_serving, steps_of
from hermes_agent.cli.offers import has_model
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import remark, say, show, table
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.clock import moment
from hermes_agent.core.errors import ConfigError, HermesError, Stopped
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.gateway.opening import kind_of, no_channel
from hermes_agent.gateway.state import GatewayState, Phase, read_state, read_states
from hermes_agent.host.loops import run as run_loop

SERVED = (
    "The gateway serves {0} already. To set it up anew, first `hermes config set gateway.channels.{0}.enabled false`."
)
NO_CHANNEL = "No channel is enabled: `hermes gateway setup` shows how."


@click.group(short_help="Connect the agent to chat platforms.")
def gateway() -> None:
    """Connect the agent to chat platforms."""


@gateway.command()
@pass_surface
def run(surface: Surface) -> int:
    """Serve the channels of section `gateway` in config.yaml until Ctrl-C or SIGTERM, and the API and webhooks if
    `api.enabled` and `webhooks.enabled` are set."""
    # One that begins again keeps its process number and may find what it wrote itself before.
    others = [each.pid for each in read_states(surface.home) if each.pid != os.getpid()]
    _warn(surface)
    if others:
        remark(f"A gateway runs on this home already (process {others[0]}); each token is used by one of them.")
    if not run_loop(serve(surface)):
        return Exit.OK
    serve_again(surface)
    remark("The gateway stopped, and this system did not let it restart.")
    return Exit.FAILED


@gateway.command()
@pass_surface
def start(surface: Surface) -> None:
    """Start the gateway in the background, and wait until each channel listens or fails."""
    _begun(surface, None)


@gateway.command()
@pass_surface
def stop(surface: Surface) -> None:
    """Stop the gateway of this home; running work may finish first."""
    drain = surface.loaded.value.gateway.drain_seconds
    if (state := read_state(surface.home)) is not None:
        remark(f"Process {state.pid} is stopping: runs have {drain:g} s to finish.")
    ended = starting.stop(surface.home, drain)
    say(f"The gateway has stopped (process {', '.join(map(str, ended))}).", stopped=ended)


@gateway.command()
@pass_surface
def restart(surface: Surface) -> None:
    """Restart the gateway after running work has finished; start it if none runs."""
    _begun(surface, read_state(surface.home))


@gateway.command()
@pass_surface
def reload(surface: Surface) -> None:
    """Reload config.yaml and .env. Where the system reports changed files, the gateway reloads by itself."""
    for state in starting.running(surface.home):
        os.kill(state.pid, RELOAD)
    say("The gateway is reloading; `hermes gateway logs` lists the changes.")


@gateway.command()
@pass_surface
def status(surface: Surface) -> None:
    """Show the state of the gateway, its channels and its outbox."""
    states, tally = starting.asked(surface.home), ask(surface, chats.tally)
    facts = {"gateway": states[0] if states else None, "others": states[1:], "outbox": tally}
    outbox = "Outbox: " + (", ".join(f"{count} {name}" for name, count in tally.items()) or "empty")
    none = "No gateway runs on this home. `hermes gateway start` starts one."
    show(facts, "\n".join((*(map(_state, states) if states else (none,)), outbox)))


def _state(state: GatewayState) -> str:
    phase = "" if state.phase is Phase.READY else f", and is {state.phase.value}"
    runs = f"The gateway runs as process {state.pid} since {moment(state.started)}{phase}."
    problems = (f"Problem: {ailment}" for ailment in state.ailments)
    return "\n".join(filter(None, (runs, *problems, state.config, _channels(state))))


@gateway.command()
@log_options
@click.option("--all", "everybody", is_flag=True, help="Include the log of all programs on this home.")
@pass_surface
def logs(surface: Surface, /, **wanted: Any) -> None:  # noqa: ANN401  click hands each option by its name
    """Show the log of the gateway."""
    show_log(surface.home.log_file, **wanted)


@gateway.command()
@click.argument("channel", required=False, default="")
@click.option("--steps", is_flag=True, help="Only show the steps of a setup by hand.")
@pass_surface
def setup(surface: Surface, channel: str, steps: bool) -> None:
    """Set up a channel: enter its token, write to it, and the gateway starts with you as its owner."""
    if not channel:
        say("\n".join(f"hermes gateway setup {name}" for name in CHANNELS), channels=list(CHANNELS))
        remark("Each of these sets up that channel.")
        return
    if channel not in CHANNELS:
        raise ConfigError(no_channel(channel))
    kind = kind_of(channel)
    if steps:
        found = steps_of(kind)
        say("\n".join(f"{number}. {step}" for number, step in enumerate(found, 1)), steps=found)
        return
    if (state := read_state(surface.home)) is not None and channel in state.channels:
        raise HermesError(SERVED.format(channel))
    try:
        if not has_model(surface):
            remark("First the model that shall answer there.")
            Questions(surface).choose(found_models(surface))
        set_up(surface, kind)
    except (click.Abort, KeyboardInterrupt) as error:
        raise Stopped(f"\nWhat you entered is kept: `hermes gateway setup {channel}` goes on from there.") from error
    start_serving(surface, kind)


@gateway.command()
@click.option("--system", is_flag=True, help="A service of the machine, from its start; needs root.")
@click.option("--print", "only_shown", is_flag=True, help="Print the unit, and change nothing.")
@pass_surface
def install(surface: Surface, system: bool, only_shown: bool) -> None:
    """Install a systemd service, which restarts the gateway after a crash or hang."""
    made = unit.unit_of(surface, starting.command_of(surface), system=system)
    if only_shown or not unit.RUNNING.exists():
        if not only_shown:
            remark(
                f"systemd does not run here, so nothing was installed. This would be {made.path}; "
                "without systemd, `hermes gateway start` runs it in the background."
            )
        say(made.text.rstrip())
        return
    asyncio.run(unit.install(made, surface))
    say(f"{made.path} is installed, and the gateway is started: `hermes gateway status`.")
    if not system:
        remark("It ends with your last session unless `loginctl enable-linger` lets it run without one.")


@gateway.command()
@click.option("--system", is_flag=True, help="The service of the machine; needs root.")
@pass_surface
def uninstall(surface: Surface, system: bool) -> None:
    """Stop and remove the systemd service."""
    made = unit.unit_of(surface, starting.command_of(surface), system=system)
    asyncio.run(unit.uninstall(made, surface))
    say(f"{made.path} is gone.")


def _warn(surface: Surface) -> None:
    """Show what is wrong with the settings, if earlier ones are in force."""
    if surface.loaded.notice:
        remark(surface.loaded.notice)


def _begun(surface: Surface, before: GatewayState | None) -> None:
    """Start a gateway, or restart the one that runs, and show it."""
    _warn(surface)
    if before is None:
        state, how = starting.start(surface), "runs"
    else:
        drain = surface.loaded.value.gateway.drain_seconds
        remark(f"The gateway is restarting: runs have {drain:g} s to finish.")
        state, how = starting.restart(surface.home, drain), "runs again"
    say(f"The gateway {how} as process {state.pid}. Its log: `hermes gateway logs -f`, {surface.home.log_file}")
    if not state.settled:
        remark("It is not ready yet; `hermes gateway status` shows its state.")
    if state.config and state.config != surface.loaded.notice:
        remark(state.config)
    say(_channels(state), gateway=state)


def _channels(state: GatewayState) -> str:
    """Table of channels, and other listeners."""
    rows = [(name, each.state, moment(each.since), each.ailment) for name, each in state.channels.items()]
    notes = [f"{name}: {each.note}" for name, each in state.channels.items() if each.note]
    shown = table(rows, ("CHANNEL", "STATE", "SINCE", "WRONG")) if rows else NO_CHANNEL
    return "\n".join((shown, *notes, *(f"{each}." for each in state.beside)))
