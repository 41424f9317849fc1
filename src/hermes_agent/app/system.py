"""A whole system at work on one home: what surfaces and commands are handed, and the snapshots of its settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import Session as View
from hermes_agent.app.intake import Intake, is_small
from hermes_agent.app.learning.learner import Learner
from hermes_agent.app.models import refused_by, route_of
from hermes_agent.app.process import Process
from hermes_agent.app.settings import Settings
from hermes_agent.app.skills import Skills
from hermes_agent.app.snapshot import SettingsSnapshot, agent_at, agent_of, prompt_of
from hermes_agent.app.toolkit import CLI
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import NoModel
from hermes_agent.core.events import RunEnded
from hermes_agent.core.ids import RandomIds
from hermes_agent.core.inbound import Inbound
from hermes_agent.core.model import ToolSchema
from hermes_agent.core.section import Section
from hermes_agent.core.tool import Quarantined
from hermes_agent.host.config import Loaded
from hermes_agent.host.secrets import Secrets
from hermes_agent.host.tasks import spawn
from hermes_agent.providers.route import Route
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.event_bus import notify
from hermes_agent.runs.front import Hermes
from hermes_agent.runs.health import Health
from hermes_agent.store.sessions import Session
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from hermes_agent.app.hooks import Hooks


class SettingsSnapshots:
    """The snapshot that new runs are built from (`now`), and those before it whose runs have not ended. Raises
    `HermesError` for settings that none can be made of."""

    def __init__(self, process: Process, loaded: Loaded[Settings]) -> None:
        self._process = process
        self._next = 0
        self._leaving: dict[int, tuple[SettingsSnapshot, asyncio.Task[None]]] = {}
        self.now = SettingsSnapshot(process, loaded)

    @property
    def count(self) -> int:
        """How many are open."""
        return 1 + len(self._leaving)

    async def renew(self, loaded: Loaded[Settings], secrets: Secrets) -> None:
        """Have these settings and secrets hold for every run that begins from now on. Raises `HermesError` for
        settings that cannot be used, and nothing has changed."""
        fresh = SettingsSnapshot(self._process, loaded)
        self._process.secrets.become(secrets)
        old, self.now = self.now, fresh
        old.learner.leave()
        self._next += 1
        self._leaving[self._next] = old, spawn(self._retire(self._next, old), name="settings of before")

    @asynccontextmanager
    async def agent(self, record: SessionRecord, journal: Journal) -> AsyncIterator[Agent]:
        """The agent of a run, whose parts stay open until the block ends. Raises `NoModel`."""
        async with self.now.held() as snapshot:
            yield await agent_of(snapshot, record, journal)

    @asynccontextmanager
    async def apart(self, record: SessionRecord, journal: Journal) -> AsyncIterator[Agent]:
        """The same for a command on this session, outside of any run: never recorded, never from a recording."""
        async with self.now.held() as snapshot:
            yield await agent_at(snapshot, record, journal, Seam(self._process.machine, RandomIds()))

    async def prompt(self, record: SessionRecord) -> tuple[tuple[Section, ...], tuple[ToolSchema, ...]]:
        """The sections and tools of the prompt that this session would begin with now, also where there is no model."""
        return await prompt_of(self.now, record)

    async def receive(self, inbound: Inbound, *, session: str = "", model: str = "") -> Inbound:
        """A message as the person's hooks let it in, and as it fits into the window of the session's model. Raises
        `HermesError` where it is not let in."""
        now = self.now
        if now.hooks is not None and now.hooks.waits_for("message:received"):
            received = await now.hooks.received(inbound)
            inbound = inbound if inbound.answers else received
        if is_small(inbound.parts):
            return inbound
        record = await self._process.store.sessions.get(session) if session else None
        return await now.intake.fit(inbound, inbound.model or (record.model if record is not None else model))

    def afterwards(self, record: SessionRecord, view: View, ended: RunEnded) -> None:
        """Tell of the end of a run."""
        for listener in self.now.afterwards:
            notify(listener, record, view, ended)

    async def quiet(self) -> None:
        """Give up, or give back, what goes on beside the runs."""
        for each in (self.now, *(old for old, _ in self._leaving.values())):
            await each.quiet()

    async def close(self) -> None:
        """Close all of them; no run goes on any more."""
        if self._leaving:
            await asyncio.wait([task for _, task in self._leaving.values()])
        await self.now.closing.aclose()

    async def _retire(self, number: int, old: SettingsSnapshot) -> None:
        """Close a snapshot when its last run has ended, and what goes on beside it; jobs that it left are begun by
        the next one."""
        try:
            await old.free.wait()
            async with old.closing:  # Whatever goes wrong before, its clients and places are closed.
                left = await old.learner.finished()
                await old.background.settled()
                await old.quiet()
        finally:
            del self._leaving[number]
        if left and self.now.learner.works:
            self.now.learner.jobs.ring()


Build = Callable[[Session, Journal], AbstractAsyncContextManager[Agent]]
"""Makes the agent of a session under its journal. Raises `NoModel`."""


@dataclass(kw_only=True)
class System(Process):
    """The parts that `open_system` joined: what lasts, and what the settings in force made (`snapshots.now`)."""

    snapshots: SettingsSnapshots = field(init=False)
    health: Health = field(init=False)

    @property
    def loaded(self) -> Loaded[Settings]:
        """The settings in force, and where they come from."""
        return self.snapshots.now.loaded

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.snapshots.now.settings

    @property
    def notice(self) -> str:
        """What whoever begins to work here should know first: how the database was found, what is wrong with the
        settings; empty where nothing."""
        return " ".join(filter(None, (self.store.notice, self.loaded.notice)))

    @property
    def toolbox(self) -> Toolbox:
        """The tools of the terminal."""
        return self.snapshots.now.toolkit.toolbox(CLI)

    @property
    def quarantined(self) -> tuple[Quarantined, ...]:
        """Tools that could not be offered."""
        return self.snapshots.now.toolkit.quarantined

    @property
    def skills(self) -> Skills:
        """The skills of the home."""
        return self.snapshots.now.skills

    @property
    def learner(self) -> Learner:
        """Who learns here."""
        return self.snapshots.now.learner

    @property
    def hooks(self) -> Hooks | None:
        """The person's own programs that are told of events; None where there are none."""
        return self.snapshots.now.hooks

    @property
    def build(self) -> Build:
        """The agent of a session under its journal, for a command, as long as a block."""
        return self.snapshots.apart

    @property
    def intake(self) -> Intake:
        """Keeps what comes in and is large."""
        return self.snapshots.now.intake

    async def settled(self) -> None:
        """Return when no run is under way, and nothing beside them."""
        await self.hermes.idle()
        await self.snapshots.now.background.settled()

    def route(self, model: str = "") -> Route:
        """The route to a model: the one named, else this process's, else the configured one. Raises `NoModel`."""
        return route_of(self.loaded, self.secrets, model or self.model)

    def not_offered(self, model: str = "") -> tuple[Quarantined, ...]:
        """The tools that a model is not offered: those that could not be made, and those that its dialect cannot
        take. Where no model is chosen yet, the former alone."""
        try:
            return (*self.quarantined, *refused_by(self.route(model), self.toolbox.offered))
        except NoModel:
            return self.quarantined


async def served(hermes: Hermes, until: Awaitable[object]) -> None:
    """Return when `until` does. Raises `DatabaseTooNew` where a later version has migrated the database."""

    async def end() -> None:
        await until

    over, outdated = spawn(end(), name="until the end"), hermes.scheduler.outdated
    try:
        await asyncio.wait((over, outdated), return_when=asyncio.FIRST_COMPLETED)
    finally:
        over.cancel()
    if outdated.done():
        raise outdated.result()
