"""A settings snapshot: all that one reading of the settings made, kept until its last run has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from hermes_agent.app.auxiliary.background_models import BackgroundModels
from hermes_agent.app.chats.people import People
from hermes_agent.app.intake.intake import Intake
from hermes_agent.app.learning.learner import Learner
from hermes_agent.app.models.broker_chain import Answerer, BrokerChain
from hermes_agent.app.models.cooldowns import StoredCoolDowns
from hermes_agent.app.models.routes import route_of
from hermes_agent.app.process import Options, Process
from hermes_agent.app.settings import Settings
from hermes_agent.app.skills import Reserved
from hermes_agent.app.tool_sources import MEMORY
from hermes_agent.app.toolkit import CLI, Toolkit, needs_of
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import NoModel
from hermes_agent.core.ids import RandomIds
from hermes_agent.core.inbound import Standings
from hermes_agent.host.config import Loaded
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.host.paths import environment
from hermes_agent.host.secrets import Secrets
from hermes_agent.memory.notes import Notes
from hermes_agent.providers.broker import Ledger
from hermes_agent.providers.catalog import UNKNOWN_WINDOW
from hermes_agent.providers.route import Route
from hermes_agent.replay.ledger import Book
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.front import Hermes
from hermes_agent.runs.one_run import Afterwards
from hermes_agent.store.database import Store
from hermes_agent.tools.permission.unasked import Unasked

if TYPE_CHECKING:
    from hermes_agent.app.hooks.hooks import Hooks
    from hermes_agent.app.memory_provider import MemoryProvider

HOOKS = "hermes_agent.app.hooks.hooks:hooks_of"
REAL_WINDOW = "hermes_agent.providers.windows:real_window"


class SettingsSnapshot:
    """All that one reading of the settings made; `closing` closes it. `users` are the runs and commands that were built
    from it and go on, `afterwards` are told of the end of runs. Raises `HermesError` where the settings name what there
    is not."""

    def __init__(self, process: Process, loaded: Loaded[Settings]) -> None:
        self.process, self.loaded, self.settings = process, loaded, loaded.value
        self.users, self.free, self.closing = 0, asyncio.Event(), AsyncExitStack()
        self.free.set()
        self.book = replace(process.book, rules=process.limits or self.settings.rules)
        self.notes = Notes(
            home=process.home,
            store=process.store,
            clock=process.machine,
            ids=RandomIds(),
            settings=self.settings.memory,
        )
        self.needs = needs_of(
            process.home,
            self.settings,
            {
                Book: self.book,
                Clock: process.machine,
                Hermes: process.hermes,
                Http: process.http,
                Notes: self.notes,
                Options: process.options,
                People: process.people,
                Reserved: process.reserved,
                Seam: process.seam,
                Secrets: process.secrets,
                Standings: process.standings,
                Store: process.store,
                Unasked: process.unasked,
            },
        )
        self.toolkit = Toolkit(self.needs)
        self.skills = self.toolkit.skills
        self.closing.push_async_callback(self.toolkit.close)
        self.memory: MemoryProvider | None = None
        if self.settings.memory.provider != "none":
            self.memory = self.needs.made(MEMORY)
            self.closing.push_async_callback(self.memory.close)
        self.hooks: Hooks | None = None
        if self.settings.hooks and process.options.tape is None:  # What a recording holds is not changed again.
            self.hooks = late(HOOKS)(self.settings.hooks, process.home.root, environment())
            self.closing.push_async_callback(self.hooks.close)
        self.background = BackgroundModels(self.needs, self.broker)
        self.learner = Learner(self.needs, self.background.model, lambda: self.toolkit.toolbox(CLI).names)
        self.learner.rest()
        self.afterwards: tuple[Afterwards, ...] = (self.background.afterwards, self.learner.afterwards)
        self.afterwards += (self.hooks.over,) if self.hooks else ()
        self._started: dict[str, str] = {}

    @asynccontextmanager
    async def held(self) -> AsyncIterator[SettingsSnapshot]:
        """It, and nothing of it is closed until the block ends."""
        self.users += 1
        self.free.clear()
        try:
            yield self
        finally:
            self.users -= 1
            if not self.users:
                self.free.set()

    async def catch_up(self) -> None:
        """Have a run begin with what other homes of the household have learned."""
        if self.process.store.versions.home:
            await self.notes.catch_up()
            await self.skills.catch_up()

    async def quiet(self) -> None:
        """Give up, or give back, what goes on beside the runs."""
        await self.learner.close()
        await self.background.close()

    @cached_property
    def intake(self) -> Intake:
        """Keeps what comes in and is large."""
        process = self.process
        return Intake(process.home.cache / "input", self._window, strict=process.options.strict_input)

    async def _window(self, model: str) -> int:
        """Tokens of the window of that model (empty: the one that answers here); of a usual one where there is none."""
        process = self.process
        try:
            route = await self._reachable(route_of(self.loaded, process.secrets, model or process.options.model))
        except NoModel:
            return UNKNOWN_WINDOW
        if not route.vendor.window_probe or self.settings.model.window is not None:
            return route.facts.window
        real: int | None = await late(REAL_WINDOW)(process.http, route)
        return real or route.facts.window

    async def broker(self, main: str, ledger: Ledger, first: str = "", *, alone: bool = False) -> Answerer:
        """The model that is named, else this process's, else the configured one; `first` as in `Brokers`. Raises
        `NoModel`."""
        process = self.process
        answering = BrokerChain(
            loaded=self.loaded,
            secrets=process.secrets,
            cool_downs=StoredCoolDowns(process.store, process.machine),
            reachable=self._reachable,
            http=process.http,
            clock=process.machine,
        )
        return await answering.model(main or process.options.model, ledger, first, alone=alone)

    async def _reachable(self, route: Route) -> Route:
        """The route with its address; a vendor that lives in this process is started when it is first asked."""
        if route.base_url:
            return route
        vendor = route.vendor
        if vendor.name not in self._started:
            self._started[vendor.name] = await self.closing.enter_async_context(late(vendor.server)())
        return replace(route, base_url=self._started[vendor.name])
