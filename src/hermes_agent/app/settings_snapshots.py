"""Snapshots of the settings: the one that new runs are built from, and those before it whose runs have not ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import Session as View
from hermes_agent.app.intake import is_small
from hermes_agent.app.process import Process
from hermes_agent.app.settings import Settings
from hermes_agent.app.snapshot import SettingsSnapshot, agent_at, agent_of, prompt_of
from hermes_agent.core.events import RunEnded
from hermes_agent.core.ids import RandomIds
from hermes_agent.core.inbound import Inbound
from hermes_agent.core.model import ToolSchema
from hermes_agent.core.section import Section
from hermes_agent.host.config import Loaded
from hermes_agent.host.secrets import Secrets
from hermes_agent.host.tasks import spawn
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.event_bus import notify
from hermes_agent.store.sessions import Session as SessionRecord


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
