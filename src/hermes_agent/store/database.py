"""The store: every table family over one database, opened by its URL."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.errors import DatabaseUnreachable
from hermes_agent.core.ids import Ids, RandomIds
from hermes_agent.host.late import late
from hermes_agent.store.cooldowns import CoolDowns
from hermes_agent.store.effects import Effects
from hermes_agent.store.engines import Engines
from hermes_agent.store.exposures import Exposures
from hermes_agent.store.history import History
from hermes_agent.store.homes import Homes
from hermes_agent.store.inbox import Inbox
from hermes_agent.store.lanes import Lanes
from hermes_agent.store.learning.pace import Pace
from hermes_agent.store.prefixes import Prefixes
from hermes_agent.store.runs import Runs
from hermes_agent.store.sessions import Sessions
from hermes_agent.store.transaction import Change, Dialect
from hermes_agent.store.usage import Ledger
from hermes_agent.store.versions import Versions
from hermes_agent.store.workers import Timings, Workers

if TYPE_CHECKING:
    from hermes_agent.store.breaks import Breaks
    from hermes_agent.store.chats.facts import Facts
    from hermes_agent.store.chats.pairing import Pairing
    from hermes_agent.store.facts.facts import KnownFacts
    from hermes_agent.store.facts.finding import FactFinding
    from hermes_agent.store.learning.jobs import Learning
    from hermes_agent.store.learning.lessons import Lessons
    from hermes_agent.store.learning.proposals import Proposals
    from hermes_agent.store.outbox import Outbox
    from hermes_agent.store.search import Search

T = TypeVar("T")
# Each dialect's own way in, loaded when its URL is used: (place, clock, timings, home) -> Engines.
DIALECTS = {
    Dialect.SQLITE: "hermes_agent.store.sqlite.dialect:open_sqlite",
    Dialect.POSTGRES: "hermes_agent.store.postgres.dialect:open_postgres",
}

# Families that no first answer needs.
SEARCH = "hermes_agent.store.search:Search"
BREAKS = "hermes_agent.store.breaks:Breaks"
OUTBOX = "hermes_agent.store.outbox:Outbox"
PAIRING = "hermes_agent.store.chats.pairing:Pairing"
FACTS = "hermes_agent.store.chats.facts:Facts"
KNOWN_FACTS = "hermes_agent.store.facts.facts:KnownFacts"
FACT_FINDING = "hermes_agent.store.facts.finding:FactFinding"
LEARNING = "hermes_agent.store.learning.jobs:Learning"
LESSONS = "hermes_agent.store.learning.lessons:Lessons"
PROPOSALS = "hermes_agent.store.learning.proposals:Proposals"


class Store:
    """What is kept, behind families of tables. `write` joins the calls of several into one commit."""

    def __init__(self, opened: Engines, clock: Clock, timings: Timings, ids: Ids, machine: str = "") -> None:
        engine = self.engine = opened.engine
        self.notice = opened.notice
        self._clock = clock
        self.workers = Workers(engine, opened.presence, clock, timings, opened.schema)
        self._index = opened.index
        self.sessions = Sessions(engine, clock)
        self.prefixes = Prefixes(engine)
        self.history = History(engine)
        self.runs = Runs(engine)
        self.exposures = Exposures(engine)
        self.effects = Effects(engine, clock)
        self.usage = Ledger(engine)
        self.versions = Versions(engine, machine)
        self.homes = Homes(engine)
        self.pace = Pace(engine)
        self.cool_downs = CoolDowns(engine)
        self.inbox = Inbox(engine, clock, ids)
        self.lanes = Lanes(engine, clock, self.workers, timings)

    @property
    def dialect(self) -> Dialect:
        """Which database this is."""
        return self.engine.dialect

    @cached_property
    def pairing(self) -> Pairing:
        """The codes by which people are let in."""
        pairing: Pairing = late(PAIRING)(self.engine, self._clock)
        return pairing

    @cached_property
    def facts(self) -> Facts:
        """What is known of chats."""
        facts: Facts = late(FACTS)(self.engine)
        return facts

    @cached_property
    def known_facts(self) -> KnownFacts:
        """Facts beside the notes."""
        made: KnownFacts = late(KNOWN_FACTS)(self.engine)
        return made

    @cached_property
    def fact_finding(self) -> FactFinding:
        """Those facts by their words."""
        made: FactFinding = late(FACT_FINDING)(self.engine)
        return made

    @cached_property
    def learning(self) -> Learning:
        """The jobs of learning."""
        made: Learning = late(LEARNING)(self.engine, self._clock, self.workers, self.pace)
        return made

    @cached_property
    def lessons(self) -> Lessons:
        """The constraints in what was learned."""
        made: Lessons = late(LESSONS)(self.engine)
        return made

    @cached_property
    def proposals(self) -> Proposals:
        """What would be learned and waits."""
        made: Proposals = late(PROPOSALS)(self.engine)
        return made

    @cached_property
    def search(self) -> Search:
        """Search over all logs."""
        search: Search = late(SEARCH)(self._index(), self.engine, self._clock)
        return search

    @cached_property
    def breaks(self) -> Breaks:
        """What broke the cache of a provider."""
        breaks: Breaks = late(BREAKS)(self.engine, self.prefixes)
        return breaks

    @cached_property
    def outbox(self) -> Outbox:
        """What goes out."""
        outbox: Outbox = late(OUTBOX)(self.engine, self._clock, self.workers)
        return outbox

    async def write(self, change: Change[T], *, durable: bool = True) -> T:
        """Commit a change (see `Engine`): it awaits only its transaction, and may run more than once."""
        return await self.engine.write(change, durable=durable)

    async def read(self, query: Change[T]) -> T:
        """Run a query (see `Engine`), beside the writers."""
        return await self.engine.read(query)

    async def close(self) -> None:
        """Leave the workers and close the connections; what was begun before is committed."""
        await self.workers.leave()
        if "search" in vars(self):  # it was used
            await self.search.close()
        await self.engine.close()


async def open_store(
    url: str | Path,
    *,
    clock: Clock | None = None,
    timings: Timings | None = None,
    ids: Ids | None = None,
    home: int = 1,
    machine: str = "",
) -> Store:
    """The store at `sqlite:///path`, a plain path, or `postgresql://...`; made where there is none. `home` is whose
    rows it reads and writes, `machine` the id of this copy of the home, where the database is not in it.

    Raises `DatabaseTooNew`, `DatabaseDamaged`, `DatabaseUnreachable` or `DiskFull`; never falls back to another
    database.
    """
    dialect, place = _parsed(url)
    clock, timings = clock or SystemClock(), timings or Timings()
    opened = await late(DIALECTS[dialect])(place, clock, timings, home)
    return Store(opened, clock, timings, ids or RandomIds(), machine)


def _parsed(url: str | Path) -> tuple[Dialect, str]:
    text = str(url)
    if text.startswith("sqlite:///"):
        return Dialect.SQLITE, unquote(text.removeprefix("sqlite:///"))
    if text.startswith(("postgresql://", "postgres://")):
        return Dialect.POSTGRES, text
    if "://" in text:
        raise DatabaseUnreachable(
            f"store.url is neither sqlite:///PATH nor postgresql://...: {text.split('://')[0]}://"
        )
    return Dialect.SQLITE, text
