"""Builds the place where commands run (local, container, remote) that the settings ask for, with its jail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from hermes_agent.host.late import late
from hermes_agent.host.paths import Home
from hermes_agent.sandbox.jail import QUIET, Jail, Walls, jail_of, scrubbed
from hermes_agent.sandbox.place import PLACES, Command, Place, PlaceFailed
from hermes_agent.sandbox.walls import CREDENTIAL_FILES, CREDENTIAL_FOLDERS, SYSTEM_CREDENTIALS
from hermes_agent.sandbox.walls import Walls as Shown
from hermes_agent.tools.settings import TerminalSettings
from hermes_agent.tools.starting import LENT_IN

TRY_SECONDS, TRY_CODE = 60, 7


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
    return f"local, jailed by {jail.name}{', with network' if settings.network else ''}"


def skills_place(home: Home, settings: TerminalSettings, variables: Mapping[str, str]) -> Place:
    """The local place for commands inside skills: always jailed, without network unless commands have it, and of the
    home only the skills are readable."""
    kind = "any" if settings.jail == "none" else settings.jail

    seen = replace(walls(home, settings), readable=(str(home.skills),))
    env = scrubbed(variables, settings.env_passthrough)
    return _on_this_machine(home.cache / "skills-exec", env, partial(jail_of, kind, seen))


def _local(home: Home, settings: TerminalSettings, env: Mapping[str, str]) -> Place:
    """Jailed and unjailed commands keep separate records: what a jailed command wrote is never read outside."""
    if settings.jail == "none":
        return _on_this_machine(home.cache / "exec", env, None)
    return _on_this_machine(home.cache / "jailed", env, partial(jail_of, settings.jail, walls(home, settings)))


def _on_this_machine(folder: Path, env: Mapping[str, str], jail: Callable[[], Jail] | None) -> Place:
    place: Place = late(PLACES["local"])(folder=folder, env=env, jail=jail)
    return place


def walls(home: Home, settings: TerminalSettings) -> Walls:
    """File access of jailed commands: the program's homes and all credential files are hidden."""
    person = Path.home()
    credentials = [person / name for name in (*CREDENTIAL_FOLDERS, *CREDENTIAL_FILES)]
    hidden = [home.root, home.base, *credentials, *SYSTEM_CREDENTIALS]
    return Walls(
        writable=tuple(str(Path(path).expanduser().absolute()) for path in settings.writable),
        hidden=tuple(dict.fromkeys(map(str, hidden))),
        lends=str(home.cache / LENT_IN),
        network=settings.network,
    )


def shown(home: Home, settings: TerminalSettings) -> Shown:
    """What commands and file tools are shown: the homes of Hermes and all credentials are closed."""
    person = Path.home()
    credentials = [person / name for name in (*CREDENTIAL_FOLDERS, *CREDENTIAL_FILES)]
    closed = [home.root, home.base, *person.glob(".hermes*"), *credentials, *SYSTEM_CREDENTIALS]
    return Shown(
        writable=tuple(str(Path(path).expanduser().absolute()) for path in settings.writable),
        closed=tuple(dict.fromkeys(map(str, closed))),
        workspaces=str(home.root / "workspace"),
        person=str(person),
    )
