"""Guided setup of a channel: asks for its secrets and options, checks them, waits for the owner's first message, and
starts the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import click

from hermes_agent.app.chats.settings import ChannelSettings, home_of
from hermes_agent.app.operations.chats import owners_with
from hermes_agent.cli.gateway import starting, unit
from hermes_agent.cli.operation import offline
from hermes_agent.cli.output import remark, say
from hermes_agent.cli.picker_choices import ask_secret
from hermes_agent.cli.surface import Surface
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import ANYBODY, ChannelError, Kind, Said
from hermes_agent.gateway.first_contact import first_message, trial
from hermes_agent.gateway.state import read_state
from hermes_agent.host.config_edit import set_values

QUOTED = 60
"""Characters of a first message that are shown."""
SERVICE = "Keep the gateway running after a restart of this machine, as a systemd service?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """What was entered for a channel: secrets and options by name."""

    secrets: Mapping[str, str]
    options: Mapping[str, str]


def steps_of(kind: Kind) -> list[str]:
    """The steps of a setup by hand."""
    key = f"hermes config set gateway.channels.{kind.name}"
    kept = ", ".join(f"`hermes secrets set {name}`" for name in kind.secrets)
    return [
        *kind.setup,
        f"Save its credentials: {kept}.",
        f"Name the owner: `{key}.owners ID`. A stranger who writes gets a code; `hermes pairing approve CODE --owner` "
        "makes them the owner.",
        f"Enable it: `{key}.enabled true`, then `hermes gateway start` if no gateway runs.",
    ]


def set_up(surface: Surface, kind: Kind) -> None:
    """Ask until the channel works and its owner is known, save that, and start the gateway."""
    remark("\n".join(f"{number}. {step}" for number, step in enumerate(kind.setup, 1)))
    entered, who = _working(surface, kind)
    for name, value in entered.secrets.items():
        surface.secrets.set(name, value)
    _write(surface, kind, {f"options.{name}": value for name, value in entered.options.items()})
    remark(f"It works. Write to {who or kind.title} now, in a private chat; Ctrl-C leaves, and what you entered stays.")
    said = _owner(surface, kind)
    owners = owners_with(_settings(surface, kind), said.sender.user)
    _write(surface, kind, {"owners": owners, "home": home_of(said.where), "enabled": "true"})
    say(
        f"{said.sender.name or said.sender.user} owns this agent on {kind.title}.",
        channel=kind.name,
        owner=said.sender.user,
    )


def start(surface: Surface, kind: Kind) -> None:
    """Have a gateway serve the channel: the one that runs, a service, or one in the background."""
    if read_state(surface.home) is not None:
        remark("The gateway that runs takes it up by itself.")
    elif unit.RUNNING.exists() and click.confirm(SERVICE, default=True, err=True):
        made = unit.unit_of(surface, starting.command_of(surface), system=False)
        asyncio.run(unit.install(made, surface))
        remark(f"{made.path} is installed, and the gateway is started.")
    else:
        state = starting.start(surface)
        remark(f"The gateway runs as process {state.pid}; `hermes gateway status` shows it.")
    remark(f"Your message is answered in {kind.title}; if no answer comes, write once more.")


def _working(surface: Surface, kind: Kind) -> tuple[Entered, str]:
    """Ask for secrets and options until the platform accepts them; also the name by which people find the agent."""
    while True:
        entered = _entered(surface, kind)
        try:
            return entered, asyncio.run(_checked(surface, kind, entered))
        except (ConfigError, ChannelError) as error:
            remark(f"That does not work yet: {error}")


def _entered(surface: Surface, kind: Kind) -> Entered:
    secrets, options = {}, {}
    for name in kind.secrets:
        has_one = bool(surface.secrets.get(name))
        if value := ask_secret(f"{name} (not shown; empty: {'keep the saved one' if has_one else 'none'})", empty=True):
            secrets[name] = value
    for name, option in kind.options.items():
        if option.asked:
            now = _settings(surface, kind).options.get(name, option.default)
            said = str(click.prompt(f"{name}: {option.doc}", default=now, show_default=bool(now), err=True))
            options[name] = said.strip()
    return Entered(secrets=secrets, options={name: value for name, value in options.items() if value})


async def _checked(surface: Surface, kind: Kind, entered: Entered) -> str:
    given = {**_settings(surface, kind).options, **entered.options}

    def secret(name: str) -> str:
        return entered.secrets.get(name) or surface.secrets.get(name)

    async with offline(surface) as access, trial(access, kind, given, secret) as channel:
        return await channel.check()


def _owner(surface: Surface, kind: Kind) -> Said:
    """Wait for messages until the person says of one that it is theirs."""
    passed = frozenset[str]()
    while True:
        said = asyncio.run(_heard(surface, kind, passed))
        if said.sender.user == ANYBODY:
            raise ConfigError(f"{kind.title} does not tell who wrote, so nobody can be the owner: see the steps above.")
        words = " ".join(said.text.split())
        remark(f"{said.sender.name or 'Somebody'} (id {said.sender.user}) wrote: {words[:QUOTED] or '(no text)'}")
        if click.confirm("Is this you?", default=True, err=True):
            return said
        passed |= {said.sender.user}
        remark("Then write to it yourself; that person gets a pairing code, as every stranger does.")


async def _heard(surface: Surface, kind: Kind, passed: frozenset[str]) -> Said:
    options = _settings(surface, kind).options
    async with offline(surface) as access, trial(access, kind, options, surface.secrets.get) as channel:
        return await first_message(access, channel, passed)


def _settings(surface: Surface, kind: Kind) -> ChannelSettings:
    found: ChannelSettings = surface.loaded.value.gateway.channels.get(kind.name, ChannelSettings())
    return found


def _write(surface: Surface, kind: Kind, values: Mapping[str, str]) -> None:
    key = f"gateway.channels.{kind.name}"
    set_values(surface.home, surface.schema, {f"{key}.{name}": value for name, value in values.items()})
