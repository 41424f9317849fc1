"""Database and identity of a home: its own database or one shared by homes (a household), and the local owner."""

from __future__ import annotations

import getpass
import os
from contextlib import suppress
from pathlib import Path

from hermes_agent.app.settings import StoreSettings
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.clock import Clock, Ids, RandomIds, SystemClock
from hermes_agent.core.errors import HomeError
from hermes_agent.host.paths import Home, read_small, write_private
from hermes_agent.host.process_table import below_agent
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.homes import KnownHome
from hermes_agent.tools.surfaces import CHILD

ID = "home.id"
LONGEST = 64


async def open_store_of(
    home: Home, settings: StoreSettings, clock: Clock | None = None, ids: Ids | None = None
) -> Store:
    """Open the store that the settings name. Raises `HomeError`, `StoreError`; `DatabaseInUse` if another home owns
    it."""
    own = str(home.database)
    if settings.url in ("", own, f"sqlite:///{own}"):
        return await open_store(own, clock=clock, ids=ids)
    clock = clock or SystemClock()
    me = KnownHome(id=id_of(home), host=os.uname().nodename, folder=str(home.root.absolute()), since=clock.now())
    store = await open_store(settings.url, clock=clock, ids=ids, machine=me.id)
    try:
        await store.homes.enter(me, shared=settings.shared)
    except BaseException:
        await store.close()
        raise
    return store


def id_of(home: Home) -> str:
    """The home's id in a shared database, from the file `home.id`; created if missing. Raises `HomeError`."""
    path = home.root / ID
    if (found := _read(path)) is None:
        draft = path.with_name(f".{ID}.{os.getpid()}")
        write_private(draft, RandomIds().short().encode())
        with suppress(FileExistsError):  # Another process of this home was faster.
            path.hardlink_to(draft)
        draft.unlink()
        found = _read(path)
    if not found:
        raise HomeError(f"{path} is empty: move it out of the way, then this home is known by a new name.")
    return found


def _read(path: Path) -> str | None:
    content = read_small(path, LONGEST)
    return None if content is None else content.decode("utf-8", "replace").strip()


def local_person() -> Principal:
    """The principal who works with this process: the owner, or a member where a command of the agent started it."""
    if below_agent():
        return Principal(platform=CHILD, user=getpass.getuser(), standing=Standing.MEMBER)
    return local_owner()


def local_owner() -> Principal:
    """The principal of this machine's user."""
    return Principal(platform="cli", user=getpass.getuser(), standing=Standing.OWNER)
