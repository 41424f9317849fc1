"""Composition root: opens the system of a home, and wires all packages together."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from hermes_agent.app.chats.people import People, keep_met
from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.household import local_person, open_store_of
from hermes_agent.app.process import Options as Options
from hermes_agent.app.settings import Settings, standing_by_key
from hermes_agent.app.skills import Reserved
from hermes_agent.app.system import SettingsSnapshots, System
from hermes_agent.core.chat import Standings
from hermes_agent.core.clock import Clock, Ids, RandomIds, SystemClock
from hermes_agent.core.spending import Rules
from hermes_agent.host.config import load
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.host.logs import open_log
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import Secrets, open_secrets
from hermes_agent.replay.seam import Book, Seam
from hermes_agent.runs.alarm import Alarm
from hermes_agent.runs.front import Hermes
from hermes_agent.runs.health import Health
from hermes_agent.store.database import open_store
from hermes_agent.store.workers import Timings

log = logging.getLogger(__name__)
TAPES = "hermes_agent.replay.recorder"


@asynccontextmanager
async def open_system(home: Home, options: Options | None = None) -> AsyncIterator[System]:
    """Context manager: open the system of a home. On exit, unfinished runs stay in the log for the next process and
    everything is closed.

    Raises `HermesError` for an unusable home or database. A config.yaml that was valid before and is broken now is
    no error: its last good version is used and `System.loaded.notice` says so.
    """
    options = options or Options()
    async with AsyncExitStack() as closing:
        loaded, secrets = load(home.ensure(), Settings).usable(), open_secrets(home)
        closing.callback(open_log(home.log_file, lambda text: options.pseudonyms(secrets.redact(text))).close)
        clock, http = SystemClock(), Http()
        tape = closing.enter_context(inserted_tape(options, loaded.value, secrets, clock))
        seam, database, store_ids, limits = tape
        people = options.people or People(loaded.value.gateway.channels)
        closing.push_async_callback(http.close)
        store = await (
            open_store(database, clock=clock, ids=store_ids, timings=Timings(lasting=False))
            if database
            else open_store_of(home, loaded.value.store, clock, store_ids)
        )
        if store.notice:
            log.warning("%s", store.notice)
        system = System(
            home=home,
            options=options,
            secrets=secrets,
            store=store,
            seam=seam,
            machine=clock,
            http=http,
            people=people,
            book=Book(store=store, clock=clock),
            standings=Standings(
                people.otherwise(lambda key: standing_by_key(system.settings.api, key) or options.standing(key))
            ),
            owner=local_person(),
            reserved=Reserved(COMMANDS),
            limits=limits,
        )
        store.engine.redact, store.workers.serves = secrets.redact, "" if options.own_only else options.queue
        system.hermes = Hermes(
            store=store,
            build=lambda record, journal: system.snapshots.agent(record, journal),
            seam=seam,
            queue=options.queue,
            own_only=options.own_only,
            service=options.service(
                store,
                people,
                lambda *run: system.snapshots.afterwards(*run),
                secrets.redact,
                lambda record: system.snapshots.closings(record),
            ),
        )
        try:
            system.snapshots = snapshots = SettingsSnapshots(system, loaded)
        except BaseException:
            await system.hermes.close()
            raise
        closing.push_async_callback(snapshots.close)
        system.hermes.receive = snapshots.receive
        closing.push_async_callback(system.hermes.close)
        scheduler = system.hermes.scheduler
        system.health = Health(store, scheduler.bus, scheduler.overdue)
        closing.callback(system.health.close)
        closing.push_async_callback(snapshots.quiet)
        closing.callback(store.engine.hurry)
        if not options.own_only and options.tape is None:
            alarm = Alarm(clock, lambda: system.snapshots.now.alarms)
            scheduler.subscribe(alarm.ring)
            alarm.start()
            closing.push_async_callback(alarm.close)
        await keep_met(people, store, None if options.own_only else scheduler.subscribe)
        yield system


@contextmanager
def inserted_tape(
    options: Options, settings: Settings, secrets: Secrets, clock: Clock
) -> Iterator[tuple[Seam, str, Ids | None, Rules | None]]:
    """Context manager: the seam for recording or replay (without a tape: the real clock and ids). For a replay also
    its database (empty: the configured one), ids and limits. Raises `CassetteError`."""
    if options.tape is None:
        yield Seam(clock, RandomIds()), "", None, None
        return
    tapes = late(TAPES)
    process = tapes.Process(queue=options.queue, attended=options.attended, rules=settings.rules)
    with tapes.opened_seam(options.tape, secrets.redact, process) as inserted:
        yield inserted
