"""Builds the place where commands run (local, container, remote) that the settings ask for, with its jail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from hermes_agent.app.settings import API_PORT, WEBHOOK_PORT
from hermes_agent.host.late import late
from hermes_agent.host.paths import Home
from hermes_agent.sandbox.connect_filter import is_supported
from hermes_agent.sandbox.jail import QUIET, Jail, Walls, jail_of, scrubbed
from hermes_agent.sandbox.network import Network
from hermes_agent.sandbox.place import PLACES, Command, Place, PlaceFailed
from hermes_agent.sandbox.traffic import Callers
from hermes_agent.tools.files.guard import CREDENTIAL_FILES, CREDENTIAL_FOLDERS, SYSTEM_CREDENTIALS
from hermes_agent.tools.settings import TerminalSettings
from hermes_agent.tools.starting import LENT_IN
from hermes_agent.tools.web.pages import Addresses

TRY_SECONDS, TRY_CODE = 60, 7
PROXY = "hermes_agent.tools.web.egress:EgressProxy"
OWN_PORTS = (API_PORT, WEBHOOK_PORT, 9119)


def make_place(home: Home, settings: TerminalSettings, variables: Mapping[str, str]) -> Place:
    """Build the place without starting it. `variables`: this process's environment. Raises `PlaceFailed` if its
    requirements are missing."""
    seen = scrubbed(variables, settings.env_passthrough)
    if settings.place == "local":
        return _local(home, settings, seen)
    told = {name: value for name, value in seen.items() if name in (*QUIET, *settings.env_passthrough)}
    try:
        build = late(PLACES[settings.place])
    except ModuleNotFoundError as error:
        raise PlaceFailed(f"`terminal.place: {settings.place}` needs the package `{error.name}`.") from error
    if isinstance(settings.network, tuple):
        raise PlaceFailed("`terminal.network` takes a list of hosts for the place `local` only; on or off elsewhere.")
    folder = home.cache / "places" / settings.place
    place: Place = build(folder, getattr(settings, settings.place), walls(home, settings), seen, told)
    return place


async def try_place(home: Home, settings: TerminalSettings, variables: Mapping[str, str], folder: str, id_: str) -> str:
    """Run a test command in the place, in this folder and under its own id. Returns a short description of the place
    and its jail. Raises `PlaceFailed`, `TimeoutError`."""
    place = make_place(home, settings, variables)
    try:
        async with asyncio.timeout(TRY_SECONDS):
            running = await place.start(f"doctor/{id_}", Command(text="exit 7", folder=folder, limit=TRY_SECONDS))
            code = (await running.wait()).code
    finally:
        await place.close()
    if code != TRY_CODE:
        raise PlaceFailed(f"A command ended with {code} instead of {TRY_CODE}.")
    if settings.place != "local":
        return settings.place
    if settings.jail == "none":
        return "local, without a jail"
    jail = jail_of(settings.jail, walls(home, settings))
    watch = "the whole network" if has_network(settings) else "watched connections"
    return f"local, jailed by {jail.name}, with {watch if has_network(settings) or is_supported() else 'no network'}"


def skills_place(home: Home, settings: TerminalSettings, variables: Mapping[str, str]) -> Place:
    """The local place for commands inside skills: always jailed, without network unless commands have it, and of the
    home only the skills are readable."""
    kind = "any" if settings.jail == "none" else settings.jail

    seen = replace(walls(home, settings), readable=(str(home.skills),))
    env = scrubbed(variables, settings.env_passthrough)
    return _on_this_machine(home.cache / "skills-exec", env, partial(jail_of, kind, seen), network_of(settings))


def _local(home: Home, settings: TerminalSettings, env: Mapping[str, str]) -> Place:
    """Jailed and unjailed commands keep separate records: what a jailed command wrote is never read outside."""
    if settings.jail == "none":
        return _on_this_machine(home.cache / "exec", env, None)
    jail = partial(jail_of, settings.jail, walls(home, settings))
    return _on_this_machine(home.cache / "jailed", env, jail, network_of(settings))


def _on_this_machine(
    folder: Path, env: Mapping[str, str], jail: Callable[[], Jail] | None, network: Network | None = None
) -> Place:
    place: Place = late(PLACES["local"])(folder=folder, env=env, jail=jail, network=network)
    return place


def has_network(settings: TerminalSettings) -> bool:
    """Whether commands reach everything, unwatched."""
    return settings.network in (True, "on")


def network_of(settings: TerminalSettings) -> Network | None:
    """What jailed commands on this machine reach; None where nobody watches."""
    hosts = settings.network if isinstance(settings.network, tuple) else ()
    hosts = tuple(host for host in hosts if not host.endswith(tuple(f":{port}" for port in OWN_PORTS)))
    if has_network(settings):
        return None
    if settings.network in (False, "off") or settings.network == ():
        return Network()
    addresses = Addresses(private=[host for host in hosts if "*" not in host])
    return Network(late(PROXY)(addresses, Callers(), hosts), hosts)


def walls(home: Home, settings: TerminalSettings) -> Walls:
    """File access of jailed commands: the program's homes and all credential files are hidden."""
    person = Path.home()
    credentials = [person / name for name in (*CREDENTIAL_FOLDERS, *CREDENTIAL_FILES)]
    hidden = [home.root, home.base, *credentials, *SYSTEM_CREDENTIALS]
    return Walls(
        writable=tuple(str(Path(path).expanduser().absolute()) for path in settings.writable),
        hidden=tuple(dict.fromkeys(map(str, hidden))),
        lends=str(home.cache / LENT_IN),
        network=has_network(settings),
    )
