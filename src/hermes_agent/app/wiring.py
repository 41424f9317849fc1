"""Joins the parts to one system: the only file that knows every package below it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hermes_agent.app.api_settings import standing_by_key
from hermes_agent.app.building import Builder
from hermes_agent.app.chats.people import People, keep_met
from hermes_agent.app.household import open_store_of
from hermes_agent.app.local_owner import local_owner
from hermes_agent.app.options import Options as Options
from hermes_agent.app.runtime import Runtime
from hermes_agent.app.settings import Settings
from hermes_agent.app.settings_snapshots import SettingsSnapshot, SettingsSnapshots
from hermes_agent.app.toolkit import CLI, Means, Toolkit
from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.ids import Ids, RandomIds
from hermes_agent.core.spending import Rules
from hermes_agent.host.config import Loaded, load
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.host.logs import open_log
from hermes_agent.host.paths import Home, environment
from hermes_agent.host.secrets import Secrets, open_secrets
from hermes_agent.memory.notes import Notes
from hermes_agent.replay.ledger import Book
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.front import Hermes
from hermes_agent.runs.health import Health
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.workers import Timings
from hermes_agent.tools.permission.unasked import Unasked
from hermes_agent.tools.surfaces import StandingOf

if TYPE_CHECKING:
    from hermes_agent.app.hooks.hooks import Hooks
    from hermes_agent.app.memory_provider import MemoryProvider
    from hermes_agent.app.skills import Skills

log = logging.getLogger(__name__)
HOOKS = "hermes_agent.app.hooks.hooks:hooks_of"
OUTSIDE = "hermes_agent.app.memory_provider:MemoryProvider"
TAPES = "hermes_agent.replay.cassettes:opened_seam"
PROCESS = "hermes_agent.replay.lines:Process"


@asynccontextmanager
async def open_runtime(home: Home, options: Options | None = None) -> AsyncIterator[Runtime]:
    """A system at work on this home; on leaving, what runs is left to the log and everything is closed.

    Raises `HermesError` for a home or database that cannot be used; a broken config.yaml is no error where it
    was right before: its last good version is in force and `Runtime.loaded.notice` says so.
    """
    options = options or Options()
    async with AsyncExitStack() as closing:
        loaded, secrets = load(home.ensure(), Settings).usable(), open_secrets(home)
        closing.callback(open_log(home.log_file, lambda text: options.pseudonyms(secrets.redact(text))).close)
        clock, http = SystemClock(), Http()
        inserted = await closing.enter_async_context(inserted_tape(options, loaded.value, secrets, clock))
        people = options.people or People(loaded.value.gateway.channels)
        closing.push_async_callback(http.close)
        store = await (
            open_store(inserted.database, clock=clock, ids=inserted.store_ids, timings=Timings(lasting=False))
            if inserted.database
            else open_store_of(home, loaded.value.store, clock, inserted.store_ids)
        )
        if store.notice:
            log.warning("%s", store.notice)
        lasting = Lasting(
            home=home,
            secrets=secrets,
            store=store,
            options=options,
            http=http,
            clock=clock,
            inserted=inserted,
            people=people,
            book=Book(store=store, clock=clock),
            standing=people.otherwise(
                lambda key: standing_by_key(snapshots.now.loaded.value.api, key) or options.standing(key)
            ),
            unasked=Unasked(),
        )
        async with closing_unless_open(store):
            snapshots = SettingsSnapshots(await lasting.snapshot(loaded), lasting.snapshot, secrets)
        closing.push_async_callback(snapshots.close)
        hermes = Hermes(
            store=store,
            build=snapshots.agent,
            seam=inserted.seam,
            queue=options.queue,
            own_only=options.own_only,
            service=options.service(store, people, snapshots.afterwards),
        )
        hermes.receive = snapshots.receive
        snapshots.serve(hermes)
        closing.push_async_callback(hermes.close)
        health = Health(store, hermes.scheduler.bus, hermes.scheduler.overdue)
        closing.callback(health.close)
        closing.push_async_callback(snapshots.quiet)
        closing.callback(store.engine.hurry)
        await keep_met(people, store, None if options.own_only else hermes.scheduler.subscribe)
        yield Runtime(
            home=home,
            secrets=secrets,
            store=store,
            hermes=hermes,
            health=health,
            snapshots=snapshots,
            unasked=lasting.unasked,
            clock=inserted.seam.clock,
            ids=inserted.seam.ids,
            owner=local_owner(),
            model=options.model,
            taped=options.tape is not None,
            restart=options.restart,
        )


@asynccontextmanager
async def closing_unless_open(store: Store) -> AsyncIterator[None]:
    """Close the store where the block fails."""
    try:
        yield
    except BaseException:
        await store.close()
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """What is the same whatever the settings become, and makes of them what is not."""

    home: Home
    secrets: Secrets
    store: Store
    options: Options
    http: Http
    clock: Clock
    inserted: Inserted
    people: People
    book: Book
    standing: StandingOf
    unasked: Unasked

    async def snapshot(self, loaded: Loaded[Settings]) -> SettingsSnapshot:
        """What these settings make. Raises `HermesError` where they name what there is not."""
        settings, options = loaded.value, self.options
        async with AsyncExitStack() as closing:
            notes = Notes(home=self.home, store=self.store, clock=self.clock, ids=RandomIds(), settings=settings.memory)
            means = Means(
                secret=self.secrets.get,
                redact=self.secrets.redact,
                mask=self.secrets.mask,
                notes=lambda: notes,
                store=lambda: self.store,
                standing=self.standing,
                http=self.http,
                unasked=self.unasked,
                allowed=options.allow,
                delivers=lambda surface: surface in self.people.channels,
            )
            toolkit = Toolkit(self.home, settings, self.clock, options.toolsets, options.extra_tools, means)
            closing.push_async_callback(toolkit.close)
            if (outside := self._outside(settings, means)) is not None:
                closing.push_async_callback(outside.close)
                toolkit.offer(outside.tools())
            if (hooks := self._hooks(settings)) is not None:
                closing.push_async_callback(hooks.close)
            toolkit.toolbox(CLI)
            builder = Builder(
                home=self.home,
                loaded=loaded,
                secrets=self.secrets,
                store=self.store,
                options=options,
                toolkit=toolkit,
                http=self.http,
                clock=self.clock,
                seam=self.inserted.seam,
                closing=closing,
                outside=outside,
                watched=hooks,
                book=replace(self.book, rules=self.inserted.rules or settings.rules),
                standing=self.standing,
                people=self.people,
                catch_up=partial(catch_up, notes, toolkit.skills) if self.store.versions.machine else None,
            )
            learner = builder.learner = builder.learns(notes, RandomIds())
            learner.rest()
            builder.closing = closing.pop_all()
            return SettingsSnapshot(
                loaded=loaded,
                toolkit=toolkit,
                notes=notes,
                builder=builder,
                learner=learner,
                afterwards=(builder.background.afterwards, learner.afterwards, *([hooks.over] if hooks else [])),
                closing=builder.closing,
            )

    def _outside(self, settings: Settings, means: Means) -> MemoryProvider | None:
        if settings.memory.provider == "none":
            return None
        made: MemoryProvider = late(OUTSIDE)(
            home=self.home,
            settings=settings.memory,
            http=self.http,
            secret=self.secrets.get,
            clock=self.clock,
            is_owner=means.is_owner,
            store=self.store,
        )
        return made

    def _hooks(self, settings: Settings) -> Hooks | None:
        if not settings.hooks or self.options.tape is not None:  # What a recording holds is not changed again.
            return None
        made: Hooks = late(HOOKS)(settings.hooks, self.home.root, environment())
        return made


async def catch_up(notes: Notes, skills: Skills) -> None:
    """Have a run begin with what other homes of the household have learned."""
    await notes.catch_up()
    await skills.catch_up()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """What stands between the runs and the world; of a replay also where it keeps its rows (empty: as configured), and
    the limits that were in force."""

    seam: Seam
    database: str = ""
    store_ids: Ids | None = None
    rules: Rules | None = None


@asynccontextmanager
async def inserted_tape(
    options: Options, settings: Settings, secrets: Secrets, clock: Clock
) -> AsyncIterator[Inserted]:
    """The seam of a process, its recording open as long as the block. Raises `CassetteError`."""
    if options.tape is None:
        yield Inserted(seam=Seam(clock, RandomIds()))
        return
    process = late(PROCESS)(queue=options.queue, attended=options.attended, rules=settings.rules)
    with late(TAPES)(options.tape, secrets.redact, process) as (seam, database, store_ids, rules):
        yield Inserted(seam=seam, database=database, store_ids=store_ids, rules=rules)
