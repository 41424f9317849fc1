"""Joins the parts to one system: the only file that knows every package below it."""

from __future__ import annotations

import getpass
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hermes_agent.app.front import Hermes
from hermes_agent.app.runtime import Runtime
from hermes_agent.app.settings import Settings
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.ids import RandomIds
from hermes_agent.core.inbound import Principal, Standing
from hermes_agent.core.tool import Tool
from hermes_agent.host.config import load
from hermes_agent.host.http import close_clients
from hermes_agent.host.logs import open_log
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import open_secrets
from hermes_agent.store.database import open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one process uses the system.

    `model` replaces the configured one. `queue` and `own_only` say whose messages it works on (see `Hermes`).
    `attended` says whether a person is there to answer questions. `toolsets` and `capabilities` narrow what the agent
    has (None: all of it); `extra_tools` are added.
    """

    model: str = ""
    queue: str = "cli"
    own_only: bool = True
    attended: bool = True
    channel: str = "terminal"
    toolsets: tuple[str, ...] | None = None
    capabilities: tuple[str, ...] | None = None
    extra_tools: Sequence[Tool] = ()


@asynccontextmanager
async def open_runtime(home: Home, options: Options | None = None) -> AsyncIterator[Runtime]:
    """A system at work on this home; on leaving, what runs is left to the log and everything is closed.

    Raises `HermesError` for a home or database that cannot be used; a broken config.yaml is no error, its last good
    version is in force and `Runtime.loaded.notice` says so.
    """
    options = options or Options()
    loaded = load(home, Settings)
    secrets = open_secrets(home)
    log_file = open_log(home.log_file, secrets.redact)
    clock, ids = SystemClock(), RandomIds()
    store = await open_store(loaded.value.store.url or str(home.database), clock=clock)
    builder = Builder(home=home, loaded=loaded, secrets=secrets, store=store, options=options, clock=clock, ids=ids)
    hermes = Hermes(
        store=store, build=builder.agent, clock=clock, ids=ids, queue=options.queue, own_only=options.own_only
    )
    try:
        yield Runtime(
            home=home,
            loaded=loaded,
            secrets=secrets,
            store=store,
            hermes=hermes,
            toolbox=builder.toolbox,
            clock=clock,
            ids=ids,
            owner=Principal(platform="cli", user=getpass.getuser(), standing=Standing.OWNER),
            model=options.model,
        )
    finally:
        await hermes.close()
        await close_clients()
        log_file.close()
