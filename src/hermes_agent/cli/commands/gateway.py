"""`hermes gateway`: your agent on chat platforms."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import click

from hermes_agent.app.operations import chats
from hermes_agent.cli.exits import Exit
from hermes_agent.cli.gateway import starting, unit
from hermes_agent.cli.gateway.serving import RELOAD, serve, serve_again
from hermes_agent.cli.log_lines import log_options, show_log
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import remark, say, say_json, table
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.clock import moment
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.gateway.state import GatewayState, Phase, read_state, read_states
from hermes_agent.host.late import late
from hermes_agent.host.loops import run as run_loop

if TYPE_CHECKING:
    from typing import Any

    from hermes_agent.gateway.channel import Kind

NO_CHANNEL = "No channel is switched on: `hermes gateway setup` says how one is."


@click.group(short_help="Be reachable on chat platforms.")
def gateway() -> None:
    """Be reachable on chat platforms."""


@gateway.command()
@pass_surface
def run(surface: Surface) -> int:
    """Listen and answer until Ctrl-C or SIGTERM. Which channels: section `gateway` of config.yaml; the API and
    webhooks too where `api.enabled` and `webhooks.enabled` say so."""
    # One that begins again keeps its process number and may find what it wrote itself before.
    others = [each.pid for each in read_states(surface.home) if each.pid != os.getpid()]
    _warn(surface)
    if others:
        remark(f"A gateway runs on this home already (process {others[0]}); each token is used by one of them.")
    if not run_loop(serve(surface)):
        return Exit.OK
    serve_again(surface)
    remark("The gateway ended, and this system did not let it begin again.")
    return Exit.FAILED


@gateway.command()
@pass_surface
def start(surface: Surface) -> None:
    """Start it in the background, and wait until its channels listen or say why not."""
    _warn(surface)
    _begun(surface, starting.start(surface), "runs")


@gateway.command()
@pass_surface
def stop(surface: Surface) -> None:
    """End the gateway of this home; what runs may finish first."""
    drain = surface.loaded.value.gateway.drain_seconds
    if (state := read_state(surface.home)) is not None:
        remark(f"Process {state.pid} was asked to end: runs have {drain:g} s to finish.")
    ended = starting.stop(surface.home, drain)
    say(f"The gateway has ended (process {', '.join(map(str, ended))}).")


@gateway.command()
@pass_surface
def restart(surface: Surface) -> None:
    """Have it begin again when what runs has finished, with a new program; start it where none
    runs."""
    _warn(surface)
    if read_state(surface.home) is None:
        _begun(surface, starting.start(surface), "runs")
        return
    drain = surface.loaded.value.gateway.drain_seconds
    remark(f"It was asked to begin again: runs have {drain:g} s to finish.")
    _begun(surface, starting.restart(surface.home, drain), "runs again")


@gateway.command()
@pass_surface
def reload(surface: Surface) -> None:
    """Have it read config.yaml and .env again; it does so by itself where the system tells that they were written."""
    for state in starting.running(surface.home):
        os.kill(state.pid, RELOAD)
    remark("It was asked to; `hermes gateway logs` says what changed.")


@gateway.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@pass_surface
def status(surface: Surface, as_json: bool) -> None:
    """Show whether it runs, how each channel is, and what waits to be delivered."""
    states, tally = starting.asked(surface.home), ask(surface, chats.tally)
    if as_json:
        say_json({"gateway": states[0] if states else None, "others": states[1:], "outbox": tally})
        return
    if not states:
        say("No gateway runs on this home. `hermes gateway start` starts one.")
    for state in states:
        phase = "" if state.phase is Phase.READY else f", and is {state.phase.value}"
        say(f"The gateway runs as process {state.pid} since {moment(state.started)}{phase}.")
        for ailment in state.ailments:
            say(f"Not well: {ailment}")
        if state.config:
            say(state.config)
        say(_channels(state))
    say("Outbox: " + (", ".join(f"{count} {name}" for name, count in tally.items()) or "empty"))


@gateway.command()
@log_options
@click.option("--all", "everybody", is_flag=True, help="Of every program on this home, not of gateways alone.")
@pass_surface
def logs(surface: Surface, /, **wanted: Any) -> None:  # noqa: ANN401  click hands each option by its name
    """Show the log of the gateway."""
    show_log(surface.home.log_file, **wanted)


@gateway.command()
@click.argument("channel", required=False, default="")
def setup(channel: str) -> None:
    """Say step by step how a channel is set up."""
    if not channel:
        say("\n".join(f"hermes gateway setup {name}" for name in CHANNELS))
        remark("Each of these says step by step how that channel is set up.")
        return
    if channel not in CHANNELS:
        raise ConfigError(f"There is no channel `{channel}`. There are: {', '.join(CHANNELS)}.")
    kind: Kind = late(CHANNELS[channel])
    key = f"hermes config set gateway.channels.{channel}"
    kept = ", ".join(f"`hermes secrets set {name}`" for name in kind.secrets)
    steps = [
        *kind.setup,
        f"Keep what it has to know: {kept}.",
        f"Say who owns it: `{key}.owners ID`. Whoever it does not know and writes to it is given a code: "
        "`hermes pairing list` shows their id, `hermes pairing approve CODE` lets them in.",
        f"Switch it on: `{key}.enabled true`, and `hermes gateway start` where none runs.",
    ]
    say("\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1)))


@gateway.command()
@click.option("--system", is_flag=True, help="A service of the machine, from its start; needs root.")
@click.option("--print", "only_shown", is_flag=True, help="Print the unit, and change nothing.")
@pass_surface
def install(surface: Surface, system: bool, only_shown: bool) -> None:
    """Keep it running as a service of systemd, which starts it anew where it crashes or hangs."""
    made = _unit(surface, system=system)
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
    """End the service of systemd, and take its unit away."""
    made = _unit(surface, system=system)
    asyncio.run(unit.uninstall(made, surface))
    say(f"{made.path} is gone.")


def _unit(surface: Surface, *, system: bool) -> unit.Unit:
    drain = surface.loaded.value.gateway.drain_seconds
    return unit.unit_of(surface, starting.command_of(surface), drain, system=system)


def _warn(surface: Surface) -> None:
    """Say what is wrong with the settings, where those of before hold."""
    if surface.loaded.notice:
        remark(surface.loaded.notice)


def _begun(surface: Surface, state: GatewayState, how: str) -> None:
    say(f"The gateway {how} as process {state.pid}. Its log: `hermes gateway logs -f`, {surface.home.log_file}")
    if not state.settled:
        remark("It is not ready yet; `hermes gateway status` shows how it is.")
    if state.config and state.config != surface.loaded.notice:
        remark(state.config)
    say(_channels(state))


def _channels(state: GatewayState) -> str:
    """Its channels, and what else listens."""
    rows = [(name, each.state, moment(each.since), each.ailment) for name, each in state.channels.items()]
    notes = [f"{name}: {each.note}" for name, each in state.channels.items() if each.note]
    shown = table(rows, ("CHANNEL", "STATE", "SINCE", "WRONG")) if rows else NO_CHANNEL
    return "\n".join((shown, *notes, *(f"{each}." for each in state.beside)))
