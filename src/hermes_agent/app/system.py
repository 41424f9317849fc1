"""The running system of one home, as surfaces and commands use it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from typing import TYPE_CHECKING

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.journal import Journal
from hermes_agent.app.auxiliary.background_models import Auxiliary
from hermes_agent.app.intake import Intake
from hermes_agent.app.learning.learner import Learner
from hermes_agent.app.models import refused_by, route_of
from hermes_agent.app.process import Process
from hermes_agent.app.settings import Settings
from hermes_agent.app.settings_snapshots import SettingsSnapshots
from hermes_agent.app.skills import Skills
from hermes_agent.app.toolkit import CLI
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import NoModel
from hermes_agent.core.tool import Quarantined
from hermes_agent.host.config import Loaded
from hermes_agent.host.tasks import spawn
from hermes_agent.memory.notes import Notes
from hermes_agent.providers.route import Route
from hermes_agent.runs.front import Hermes
from hermes_agent.runs.health import Health
from hermes_agent.store.sessions import Session
from hermes_agent.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from hermes_agent.app.hooks import Hooks

Build = Callable[[Session, Journal], AbstractAsyncContextManager[Agent]]
"""Makes the agent of a session under its journal. Raises `NoModel`."""


@dataclass(kw_only=True)
class System(Process):
    """A running system as `open_system` wired it: the process's own objects plus those of the current settings
    (`snapshots.now`)."""

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
    def quarantined(self) -> tuple[Quarantined, ...]:
        """Tools that could not be built, with the reason."""
        return self.snapshots.now.toolkit.quarantined

    @property
    def skills(self) -> Skills:
        """The skills of the home."""
        return self.snapshots.now.skills

    @property
    def notes(self) -> Notes:
        """The notes of the home."""
        return self.snapshots.now.notes

    @property
    def learner(self) -> Learner:
        """The learning service."""
        return self.snapshots.now.learner

    @property
    def hooks(self) -> Hooks | None:
        """The user-defined hooks; None if there are none."""
        return self.snapshots.now.hooks

    @property
    def auxiliary(self) -> Auxiliary:
        """Factory of auxiliary models."""
        return self.snapshots.now.background.model

    @property
    def build(self) -> Build:
        """Context-manager factory of a session's agent, for commands outside of runs."""
        return self.snapshots.apart

    @property
    def intake(self) -> Intake:
        """Large input handling."""
        return self.snapshots.now.intake

    async def settled(self) -> None:
        """Wait until no run or background task is active."""
        await self.hermes.idle()
        await self.snapshots.now.background.settled()

    def route(self, model: str = "") -> Route:
        """The route of a model: the named one, else this process's, else the configured one. Raises `NoModel`."""
        return route_of(self.loaded, self.secrets, model or self.model)

    def not_offered(self, model: str = "") -> tuple[Quarantined, ...]:
        """Tools that a model is not offered: those that could not be built, and those that its dialect cannot
        express. Without a model only the former."""
        try:
            return (*self.quarantined, *refused_by(self.route(model), self.toolbox.offered))
        except NoModel:
            return self.quarantined


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
