"""Builds the place where commands run (local, container, remote) that the settings ask for, with its jail."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from hermes_agent.app.settings import API_PORT, WEBHOOK_PORT
from hermes_agent.host.late import late
from hermes_agent.host.paths import Home, card_workspaces, environment
from hermes_agent.sandbox.jail import QUIET, check_workspace, is_apart, jail_of, jail_or_none, scrubbed, toolchains
from hermes_agent.sandbox.network import Network
from hermes_agent.sandbox.place import NO_WALL, PLACES, Command, Place, PlaceFailed
from hermes_agent.sandbox.seccomp import is_supported
from hermes_agent.sandbox.traffic import Callers
from hermes_agent.sandbox.walls import CREDENTIAL_FILES, CREDENTIAL_FOLDERS, SYSTEM, SYSTEM_CREDENTIALS, Walls, real
from hermes_agent.tools.settings import TerminalSettings
from hermes_agent.tools.starting import LENT_IN
from hermes_agent.tools.web.pages import Addresses

TRY_SECONDS, TRY_CODE = 60, 7
OWN_PORTS = (API_PORT, WEBHOOK_PORT, 9119)
# Loaded with the first command.
PROXY = "hermes_agent.tools.web.egress:EgressProxy"
WALLED = "hermes_agent.sandbox.piped:WalledPlace"
THIN = "hermes_agent.sandbox.landlock:Thin"


def make_place(
    home: Home, settings: TerminalSettings, variables: Mapping[str, str], *, blocked: Sequence[str] = ()
) -> Place:
    """Build the place without starting it. `variables`: this process's environment; `blocked`: sites that the proxy
    refuses. Raises `PlaceFailed` if its requirements are missing."""
    seen = scrubbed(variables, settings.env_passthrough)
    if settings.place == "local":
        return _local(home, settings, seen, blocked)
    told = {name: value for name, value in seen.items() if name in (*QUIET, *settings.env_passthrough)}
    try:
        build = late(PLACES[settings.place])
    except ModuleNotFoundError as error:
        raise PlaceFailed(f"`terminal.place: {settings.place}` needs the package `{error.name}`.") from error
    if isinstance(settings.network, tuple):
        raise PlaceFailed("`terminal.network` takes a list of hosts for the place `local` only; on or off elsewhere.")
    folder = home.cache / "places" / settings.place
    place: Place = build(folder, getattr(settings, settings.place), walls(home, settings, variables), seen, told)
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
    wall = place.wall()
    return f"local, jailed by {wall}, with {_network_words(settings)}" if wall else "local, without a jail"


def no_wall(home: Home, settings: TerminalSettings, variables: Mapping[str, str]) -> str:
    """A sentence for the owner where no wall can be had that the settings would take; else empty. Blocks."""
    if settings.place != "local" or settings.jail != "auto":
        return ""
    with suppress(PlaceFailed):  # No command runs, and each says why.
        jail = jail_or_none(settings.jail, walls(home, settings, variables))
        if jail is None:
            return NO_WALL
        jail.close()
    return ""


def skills_place(home: Home, settings: TerminalSettings, variables: Mapping[str, str]) -> Place:
    """The local place for commands inside skills: always jailed, without network unless commands have all of it, and
    of the home only the skills are readable."""
    kind = "any" if settings.jail in ("none", "auto") else settings.jail
    seen = walls(home, settings, variables)
    shown = replace(seen, readable=(*seen.readable, str(home.skills)))
    env = scrubbed(variables, settings.env_passthrough)
    folder, jail = home.cache / "skills-exec", partial(jail_of, kind, shown)
    network = None if has_network(settings) else Network()
    place: Place = late(PLACES["local"])(folder=folder, env=env, jail=jail, network=network)
    return place


def _local(home: Home, settings: TerminalSettings, env: Mapping[str, str], blocked: Sequence[str]) -> Place:
    shown = walls(home, settings, env)
    jail = partial(jail_or_none, settings.jail, shown)
    closed = (str(home.root), str(home.base))
    thin = partial(late(THIN), replace(shown, readable=(), writable=("/",), closed=closed))
    network = network_of(settings, blocked)
    place: Place = late(WALLED)(folder=home.cache, env=env, jail=jail, thin=thin, network=network)
    return place


def has_network(settings: TerminalSettings) -> bool:
    """Whether commands reach everything, unwatched."""
    return settings.network in (True, "on")


def _network_words(settings: TerminalSettings) -> str:
    if has_network(settings):
        return "the whole network"
    return "watched connections" if is_supported() else "no network (the kernel lets nobody watch connections)"


def network_of(settings: TerminalSettings, blocked: Sequence[str] = ()) -> Network | None:
    """What jailed commands on this machine reach; None where nobody watches."""
    if has_network(settings):
        return None
    if settings.network in (False, "off", ()):
        return Network()
    named = settings.network if isinstance(settings.network, tuple) else ()
    hosts = tuple(host for host in named if not host.endswith(tuple(f":{port}" for port in OWN_PORTS)))
    addresses = Addresses(blocked=blocked, private=[host for host in hosts if "*" not in host])
    return Network(late(PROXY)(addresses, Callers(), hosts), hosts)


def walls(home: Home, settings: TerminalSettings, variables: Mapping[str, str]) -> Walls:
    """What commands on this machine are shown; the homes of Hermes and all stores of credentials are closed. Raises
    `PlaceFailed` where the settings would show one of those. Blocks."""
    person = Path.home()
    credentials = [person / name for name in (*CREDENTIAL_FOLDERS, *CREDENTIAL_FILES, ".hermes")]
    homes = home.root, home.base, *person.glob(".hermes*")
    closed = dict.fromkeys(map(str, [*homes, *credentials, *SYSTEM_CREDENTIALS]))
    readable, writable = _absolute(settings.readable), _absolute(settings.writable)
    bare = Walls(closed=tuple(closed))
    for path in (*readable, *writable):
        if not bare.opens(os.path.realpath(path)):
            raise PlaceFailed(f"{path} is closed to commands: take it out of `terminal.readable` and `writable`.")
    interpreter = (prefix for prefix in (sys.prefix, sys.base_prefix) if is_apart(prefix, str(person)))
    return Walls(
        readable=(*SYSTEM, *toolchains(str(person), variables), *interpreter, *readable),
        writable=writable,
        closed=tuple(closed),
        workspaces=str(home.root / "workspace"),
        shared=str(card_workspaces(home)),
        person=str(person),
        caches=str(home.cache / "walls"),
        lends=str(home.cache / LENT_IN),
        network=has_network(settings),
        processes=settings.processes,
        memory_mb=settings.memory_mb or _half_of_memory(),
        session_mb=settings.session_mb,
    )


def other_folders(home: Home, settings: TerminalSettings, folders: Sequence[str]) -> tuple[str, ...]:
    """The real paths of folders that a session may work in besides its workspace, also behind the wall. Raises
    `PlaceFailed` for one that holds a home, the system, or what is everybody's, and one that is closed. Blocks."""
    shown, found = walls(home, settings, environment()), tuple(map(real, folders))
    for each in found:
        if not is_apart(each, shown.person):
            raise PlaceFailed(f"{each} holds the system, or all of a home: name the folder in it.")
        check_workspace(each, shown)
    return found


def _absolute(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(Path(path).expanduser().absolute()) for path in paths)


def _half_of_memory() -> int:
    return (os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) >> 21
