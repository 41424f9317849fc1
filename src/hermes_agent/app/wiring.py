"""Joins the parts to one system: the only file that knows every package below it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.compaction.compactor import Compactor, Shortens
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.prompt import SessionPrompt, Surroundings
from hermes_agent.agent.tail import Now, Tail
from hermes_agent.app.chains import chain_of
from hermes_agent.app.cooldowns import StoredCoolDowns
from hermes_agent.app.front import Hermes
from hermes_agent.app.ledger import Book, RunLedger
from hermes_agent.app.remembering import local_owner
from hermes_agent.app.runtime import Runtime
from hermes_agent.app.settings import Settings
from hermes_agent.app.surroundings import surroundings
from hermes_agent.app.toolkit import CLI, Means, Toolkit, is_local
from hermes_agent.core.budget import Budget, Limits
from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.ids import Ids, RandomIds
from hermes_agent.core.tool import Tool
from hermes_agent.host.config import Loaded, load
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.host.logs import open_log
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import Secrets, open_secrets
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.whose import person_of
from hermes_agent.providers.broker import Broker
from hermes_agent.providers.route import Route
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.tools.surfaces import GUEST

if TYPE_CHECKING:
    from hermes_agent.app.outside import Outside

OUTSIDE = "hermes_agent.app.outside:Outside"
UNFENCED = "hermes_agent.memory.unfenced:Unfenced"
SNAPSHOT = "hermes_agent.memory.snapshot:snapshot"
SHORTENER = "hermes_agent.agent.compaction.shorten:Shortener"


def is_stranger(principal: str) -> bool:
    """Whether somebody speaks from outside this machine."""
    return not is_local(principal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one process uses the system.

    `model` replaces the configured one. `queue` and `own_only` say whose messages it works on (see `Hermes`).
    `attended` says whether a person is there to answer questions. `toolsets` and `capabilities` narrow what the agent
    has (None: all of it); `extra_tools` are added. `is_guest` says whether a principal's key is a guest's; without
    an access list everybody is who does not speak on this machine. `is_owner` says whose home this is, by default
    whoever speaks on this machine.
    """

    model: str = ""
    queue: str = "cli"
    own_only: bool = True
    attended: bool = True
    channel: str = "terminal"
    toolsets: tuple[str, ...] | None = None
    capabilities: tuple[str, ...] | None = None
    extra_tools: Sequence[Tool] = ()
    is_guest: Callable[[str], bool] = is_stranger
    is_owner: Callable[[str], bool] = is_local


@asynccontextmanager
async def open_runtime(home: Home, options: Options | None = None) -> AsyncIterator[Runtime]:
    """A system at work on this home; on leaving, what runs is left to the log and everything is closed.

    Raises `HermesError` for a home or database that cannot be used; a broken config.yaml is no error: its last good
    version is in force and `Runtime.loaded.notice` says so.
    """
    options = options or Options()
    async with AsyncExitStack() as closing:
        loaded, secrets = load(home.ensure(), Settings), open_secrets(home)
        closing.callback(open_log(home.log_file, secrets.redact).close)
        clock, ids, http = SystemClock(), RandomIds(), Http()
        means = Means(secret=secrets.get, notes=lambda: notes, is_owner=options.is_owner)
        toolkit = Toolkit(home, loaded.value, clock, options.toolsets, options.extra_tools, means)
        store = await open_store(loaded.value.store.url or str(home.database), clock=clock)
        notes = Notes(home=home, store=store, clock=clock, ids=ids, settings=loaded.value.memory)
        outside: Outside | None = None
        if loaded.value.memory.provider != "none":
            outside = late(OUTSIDE)(
                home=home,
                settings=loaded.value.memory,
                http=http,
                secret=secrets.get,
                clock=clock,
                is_owner=options.is_owner,
                store=store,
            )
        builder = Builder(
            home=home,
            loaded=loaded,
            secrets=secrets,
            store=store,
            options=options,
            toolkit=toolkit,
            http=http,
            clock=clock,
            ids=ids,
            closing=closing,
            outside=outside,
            book=Book(store=store, clock=clock, rules=loaded.value.budget.rules),
        )
        hermes = Hermes(
            store=store, build=builder.agent, clock=clock, ids=ids, queue=options.queue, own_only=options.own_only
        )
        closing.push_async_callback(http.close)
        closing.push_async_callback(toolkit.close)
        if outside is not None:
            toolkit.offer(outside.tools())
            closing.push_async_callback(outside.close)
        closing.push_async_callback(hermes.close)
        yield Runtime(
            home=home,
            loaded=loaded,
            secrets=secrets,
            store=store,
            hermes=hermes,
            toolbox=toolkit.toolbox(CLI),
            quarantined=toolkit.quarantined,
            unasked=toolkit.unasked,
            clock=clock,
            ids=ids,
            owner=local_owner(),
            build=builder.agent,
            notes=notes,
            is_owner=options.is_owner,
            model=options.model,
        )


@dataclass(slots=True, kw_only=True)
class Builder:
    """Makes the agent of each run out of the parts of this process."""

    home: Home
    loaded: Loaded[Settings]
    secrets: Secrets
    store: Store
    options: Options
    toolkit: Toolkit
    http: Http
    clock: Clock
    ids: Ids
    closing: AsyncExitStack
    book: Book
    outside: Outside | None = None
    started: dict[str, str] = field(default_factory=dict)

    async def agent(self, record: SessionRecord, journal: Journal) -> Agent:
        """The agent for a run of this session. Raises `NoModel`."""
        settings = self.loaded.value
        surface = GUEST if self.options.is_guest(record.principal) else record.surface
        toolbox = self.toolkit.toolbox(surface)
        cool_downs = StoredCoolDowns(self.store, self.clock)
        name = record.model or self.options.model
        chain = await chain_of(self.loaded, self.secrets, name, cool_downs, self._reachable)
        broker = Broker(
            chain,
            ledger=RunLedger(self.book, journal, record),
            http=self.http,
            clock=self.clock,
            settings=settings.model,
        )

        async def look_around() -> Surroundings:
            return await asyncio.to_thread(
                surroundings,
                soul=self.home.soul_file,
                workspace=Path(record.workspace),
                channel=self.options.channel,
                now=self.clock.now(),
                notes=self._notes(record),
            )

        budget = Budget(limits=self._limits())
        recall = self.outside.recall(record) if self.outside else None
        tail = Tail([Now(self.clock), *self.toolkit.tail, *([recall] if recall else [])], self.ids)

        def shortener() -> Shortens:
            made: Shortens = late(SHORTENER)(
                seconds=settings.compaction.seconds,
                writers=(broker,),
                tail=tail,
                deadline=budget.limits.deadline,
                ids=self.ids,
                redact=self.secrets.redact,
            )
            return made

        return Agent(
            model=late(UNFENCED)(broker, recall.answered) if recall else broker,
            tools=toolbox,
            prompt=SessionPrompt(self.store, toolbox.offered, look_around),
            budget=budget,
            clock=self.clock,
            ids=self.ids,
            hooks=self.toolkit.hooks(
                self.options.capabilities, attended=self.options.attended, session=record.id, surface=surface
            ),
            effort=settings.model.reasoning_effort,
            max_parallel=settings.agent.max_parallel,
            attended=self.options.attended,
            redact=self.secrets.redact,
            tail=tail,
            compactor=Compactor(settings=settings.compaction, shortener=shortener),
        )

    def _notes(self, record: SessionRecord) -> Callable[[], tuple[str, tuple[str, ...]]]:
        person = person_of(record.principal, self.options.is_owner, record.conversation)
        return lambda: late(SNAPSHOT)(self.home, self.loaded.value.memory, person)

    async def _reachable(self, route: Route) -> Route:
        """The route with its address; a vendor that lives in this process is started when it is first asked."""
        if route.base_url:
            return route
        vendor = route.vendor
        if vendor.name not in self.started:
            self.started[vendor.name] = await self.closing.enter_async_context(late(vendor.server)())
        return replace(route, base_url=self.started[vendor.name])

    def _limits(self) -> Limits:
        agent = self.loaded.value.agent
        deadline = None if agent.max_seconds is None else self.clock.monotonic() + agent.max_seconds
        return Limits(turns=agent.max_turns, deadline=deadline)
