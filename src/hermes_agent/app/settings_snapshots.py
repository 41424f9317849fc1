"""Snapshots of the settings: what one reading of them made, kept until its last run has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import Session as View
from hermes_agent.app.building import Builder
from hermes_agent.app.intake.intake import is_small
from hermes_agent.app.learning.learner import Learner
from hermes_agent.app.settings import Settings
from hermes_agent.app.toolkit import Toolkit
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import RunEnded
from hermes_agent.core.inbound import Inbound
from hermes_agent.host.config import Loaded
from hermes_agent.host.secrets import Secrets
from hermes_agent.host.tasks import spawn
from hermes_agent.memory.notes import Notes
from hermes_agent.runs.event_bus import notify
from hermes_agent.runs.front import Hermes
from hermes_agent.runs.one_run import Afterwards
from hermes_agent.store.sessions import Session as SessionRecord


@dataclass(kw_only=True)
class SettingsSnapshot:
    """All that one reading of the settings made. `afterwards` are told of the end of runs; `closing` closes it;
    `users` are the runs and commands that were built from it and go on."""

    loaded: Loaded[Settings]
    toolkit: Toolkit
    notes: Notes
    builder: Builder
    learner: Learner
    afterwards: Sequence[Afterwards]
    closing: AsyncExitStack
    users: int = 0
    free: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[Builder]:
        """Its builder, and nothing of it is closed until the block ends."""
        self.users += 1
        self.free.clear()
        try:
            yield self.builder
        finally:
            self.users -= 1
            if not self.users:
                self.free.set()

    async def quiet(self) -> None:
        """Give up, or give back, what goes on beside the runs."""
        await self.learner.close()
        await self.builder.background.close()


Make = Callable[[Loaded[Settings]], Awaitable[SettingsSnapshot]]
"""Makes a snapshot. Raises `HermesError` for settings that it cannot be made of."""


class SettingsSnapshots:
    """The snapshot that new runs are built from (`now`), and those before it whose runs have not ended."""

    def __init__(self, now: SettingsSnapshot, make: Make, secrets: Secrets) -> None:
        self.now = now
        self.hermes: Hermes | None = None
        now.free.set()
        self._make = make
        self._secrets = secrets
        self._next = 0
        self._leaving: dict[int, tuple[SettingsSnapshot, asyncio.Task[None]]] = {}

    @property
    def count(self) -> int:
        """How many are open."""
        return 1 + len(self._leaving)

    def serve(self, hermes: Hermes) -> None:
        """This is whose runs they are."""
        self.hermes = self.now.learner.hermes = hermes

    async def renew(self, loaded: Loaded[Settings], secrets: Secrets) -> None:
        """Have these settings and secrets hold for every run that begins from now on. Raises `HermesError` for
        settings that cannot be used, and nothing has changed."""
        fresh = await self._make(loaded)
        fresh.free.set()
        fresh.learner.hermes = self.hermes
        self._secrets.become(secrets)
        old, self.now = self.now, fresh
        old.learner.leave()
        self._next += 1
        self._leaving[self._next] = old, spawn(self._retire(self._next, old), name="settings of before")

    @asynccontextmanager
    async def agent(self, record: SessionRecord, journal: Journal) -> AsyncIterator[Agent]:
        """The agent of a run, whose parts stay open until the block ends. Raises `NoModel`."""
        async with self.now.held() as builder:
            yield await builder.agent(record, journal)

    @asynccontextmanager
    async def apart(self, record: SessionRecord, journal: Journal) -> AsyncIterator[Agent]:
        """The same for a command on this session, outside of any run: never recorded, never from a recording."""
        async with self.now.held() as builder:
            yield await builder.apart(record, journal)

    async def receive(self, inbound: Inbound, *, session: str = "", model: str = "") -> Inbound:
        """A message as the person's hooks let it in, and as it fits into the window of the session's model. Raises
        `HermesError` where it is not let in."""
        builder = self.now.builder
        if builder.watched is not None and builder.watched.waits_for("message:received"):
            received = await builder.watched.received(inbound)
            inbound = inbound if inbound.answers else received
        if is_small(inbound.parts):
            return inbound
        record = await builder.store.sessions.get(session) if session else None
        return await builder.intake.fit(inbound, inbound.model or (record.model if record is not None else model))

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
                await old.builder.background.settled()
                await old.quiet()
        finally:
            del self._leaving[number]
        if left and self.now.learner.works:
            self.now.learner.jobs.ring()
