"""The running system of a home, as surfaces and commands get it; and the snapshots of its settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from hermes_agent.agent.agent import Agent, Closing
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import Session as View
from hermes_agent.app.intake import Intake, is_small
from hermes_agent.app.learning.learner import Learner
from hermes_agent.app.models import refused_by, route_of
from hermes_agent.app.process import Options as Options, Process
from hermes_agent.app.settings import Settings
from hermes_agent.app.skills import Skills
from hermes_agent.app.snapshot import SettingsSnapshot, agent_at, agent_of, prompt_of
from hermes_agent.app.toolkit import CLI
from hermes_agent.app.work import mandate_of, work_part
from hermes_agent.core.chat import Inbound
from hermes_agent.core.clock import RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, NoModel
from hermes_agent.core.events import RunEnded
from hermes_agent.core.messages import ToolSchema
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
from hermes_agent.sandbox.place import NO_WALL
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from hermes_agent.app.hooks import Hooks


class SettingsSnapshots:
    """The current settings snapshot (`now`), and older ones until their last run and background task have ended. Raises
    `HermesError` for settings that cannot be used."""

    def __init__(self, process: Process, loaded: Loaded[Settings]) -> None:
        self._process = process
        self._next = 0
        self._leaving: dict[int, tuple[SettingsSnapshot, asyncio.Task[None]]] = {}
        self.now = SettingsSnapshot(process, loaded)

    @property
    def count(self) -> int:
        """Number of open snapshots."""
        return 1 + len(self._leaving)

    async def renew(self, loaded: Loaded[Settings], secrets: Secrets) -> None:
        """Switch new runs to these settings and secrets. Raises `HermesError` for unusable ones, and changes nothing
        then."""
        fresh = SettingsSnapshot(self._process, loaded)
        self._process.secrets.become(secrets)
        old, self.now = self.now, fresh
        old.learner.leave()
        self._next += 1
        self._leaving[self._next] = old, spawn(self._retire(self._next, old), name="settings of before")

    @asynccontextmanager
    async def agent(self, record: SessionRecord, journal: Journal) -> AsyncIterator[Agent]:
        """Context manager: the agent of a run; its snapshot stays open inside the block. Raises `NoModel`."""
        async with self.now.held() as snapshot:
            yield await agent_of(snapshot, record, journal)

    @asynccontextmanager
    async def apart(self, record: SessionRecord, journal: Journal) -> AsyncIterator[Agent]:
        """Context manager: the agent for a command on this session outside of any run; never recorded or replayed."""
        async with self.now.held() as snapshot:
            yield await agent_at(snapshot, record, journal, Seam(self._process.machine, RandomIds()))

    async def prompt(self, record: SessionRecord) -> tuple[tuple[Section, ...], tuple[ToolSchema, ...]]:
        """The prompt sections and tools with which this session would start now; works without a model."""
        return await prompt_of(self.now, record)

    async def receive(self, inbound: Inbound, *, session: str = "", model: str = "") -> Inbound:
        """Pass an inbound message through hooks and fit it into the model's window. Raises `HermesError` if a hook
        blocks it."""
        now = self.now
        if now.hooks is not None and now.hooks.waits_for("message:received"):
            received = await now.hooks.received(inbound)
            inbound = inbound if inbound.answers else received
        if is_small(inbound.parts):
            return inbound
        record = await self._process.store.sessions.get(session) if session else None
        return await now.intake.fit(inbound, inbound.model or (record.model if record is not None else model))

    def afterwards(self, record: SessionRecord, view: View, ended: RunEnded) -> None:
        """Notify the listeners of a run's end."""
        for listener in self.now.afterwards:
            notify(listener, record, view, ended)

    async def closings(self, record: SessionRecord) -> tuple[Closing, ...]:
        """What the end of a run without an agent adds to its commit."""
        try:
            mandate = await mandate_of(self._process.store, record)
        except HermesError:  # It is why there is no agent.
            mandate = None
        return (await work_part(self.now.needs, record, mandate)).closings

    async def quiet(self) -> None:
        """Cancel background tasks, or return their jobs to the queue."""
        for each in (self.now, *(old for old, _ in self._leaving.values())):
            await each.quiet()

    async def close(self) -> None:
        """Close all snapshots; no run may be active."""
        if self._leaving:
            await asyncio.wait([task for _, task in self._leaving.values()])
        await self.now.closing.aclose()

    async def _retire(self, number: int, old: SettingsSnapshot) -> None:
        """Close a snapshot after its last run and background task; the current one starts the jobs it left."""
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


@dataclass(kw_only=True)
class System(Process):
    """The running system of a home, made by `open_system`: the process's own objects, and those built from the current
    settings (`snapshots.now`)."""

    snapshots: SettingsSnapshots = field(init=False)
    health: Health = field(init=False)

    @property
    def loaded(self) -> Loaded[Settings]:
        """The current settings and their sources."""
        return self.snapshots.now.loaded

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self.snapshots.now.settings

    @property
    def notice(self) -> str:
        """Warnings to show at the start: about the database and the settings; may be empty."""
        return " ".join(filter(None, (self.store.notice, self.loaded.notice)))

    @property
    def toolbox(self) -> Toolbox:
        """The terminal's tools."""
        return self.snapshots.now.toolkit.toolbox(CLI)

    @property
    def skills(self) -> Skills:
        """The skills of the home."""
        return self.snapshots.now.skills

    @property
    def learner(self) -> Learner:
        """The learning service."""
        return self.snapshots.now.learner

    @property
    def hooks(self) -> Hooks | None:
        """The user-defined hooks; None if there are none."""
        return self.snapshots.now.hooks

    @property
    def intake(self) -> Intake:
        """Large input handling."""
        return self.snapshots.now.intake

    async def settled(self) -> None:
        """Wait until no run or background task is active."""
        await self.hermes.idle()
        await self.snapshots.now.background.settled()

    async def no_wall(self, *, only_first: bool = False) -> str:
        """A sentence for the owner where no wall can be had that the settings would take; else empty, and with
        `only_first` also where the home has sessions."""
        terminal = self.loaded.value.terminal
        wants = terminal.place == "local" and terminal.jail == "auto"
        if wants and only_first and await self.store.sessions.list(limit=1):
            return ""
        return NO_WALL if wants and not await asyncio.to_thread(self.snapshots.now.has_wall) else ""

    def route(self, model: str = "") -> Route:
        """The route of a model: the named one, else this process's, else the configured one. Raises `NoModel`."""
        return route_of(self.loaded, self.secrets, model or self.model)

    def not_offered(self, model: str = "") -> tuple[Quarantined, ...]:
        """Tools that a model is not offered: those that could not be built, and those that its dialect cannot
        express. Without a model only the former."""
        quarantined = self.snapshots.now.toolkit.quarantined
        try:
            return (*quarantined, *refused_by(self.route(model), self.toolbox.offered))
        except NoModel:
            return quarantined


async def served(hermes: Hermes, until: Awaitable[object]) -> None:
    """Serve until `until` returns. Raises `DatabaseTooNew` if a later version migrated the database meanwhile."""

    async def end() -> None:
        await until

    over, outdated = spawn(end(), name="until the end"), hermes.scheduler.outdated
    try:
        await asyncio.wait((over, outdated), return_when=asyncio.FIRST_COMPLETED)
    finally:
        over.cancel()
    if outdated.done():
        raise outdated.result()
