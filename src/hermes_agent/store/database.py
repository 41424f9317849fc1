"""The store: all table groups over one database, opened by its URL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import unquote

from hermes_agent.core.clock import Clock, Ids, RandomIds, SystemClock
from hermes_agent.core.errors import DatabaseUnreachable
from hermes_agent.host.late import late
from hermes_agent.store.breaks import Exposures, Prefixes
from hermes_agent.store.cooldowns import CoolDowns
from hermes_agent.store.effects import Effects
from hermes_agent.store.history import History
from hermes_agent.store.homes import Homes
from hermes_agent.store.inbox import Inbox
from hermes_agent.store.lanes import Lanes
from hermes_agent.store.learning.jobs import Pace
from hermes_agent.store.sessions import Sessions
from hermes_agent.store.transaction import Change, Dialect
from hermes_agent.store.usage import Ledger
from hermes_agent.store.versions import Versions
from hermes_agent.store.workers import Engines, Timings, Workers

if TYPE_CHECKING:
    from hermes_agent.store.breaks import Breaks
    from hermes_agent.store.facts.facts import KnownFacts
    from hermes_agent.store.facts.finding import FactFinding
    from hermes_agent.store.learning.jobs import Learning
    from hermes_agent.store.learning.lessons import Lessons
    from hermes_agent.store.learning.proposals import Proposals
    from hermes_agent.store.mcp.catalogue import McpCatalogue
    from hermes_agent.store.outbox import Outbox
    from hermes_agent.store.pairing import Facts, Pairing
    from hermes_agent.store.search import Index, Search
    from hermes_agent.store.work.activity import Activity
    from hermes_agent.store.work.board import Boards
    from hermes_agent.store.work.card_runs import CardRuns
    from hermes_agent.store.work.children import Children, Mandates
    from hermes_agent.store.work.cron.jobs import CronInstants, CronJobs
    from hermes_agent.store.work.goals import GoalRounds, Goals

T = TypeVar("T")
# Each dialect's own way in, loaded when its URL is used: (place, clock, timings, home) -> Engines.
DIALECTS = {
    Dialect.SQLITE: "hermes_agent.store.sqlite.dialect:open_sqlite",
    Dialect.POSTGRES: "hermes_agent.store.postgres.dialect:open_postgres",
}


class Family(Generic[T]):
    """Descriptor that loads a table group on first use and builds it from the attributes of the store that it
    `needs`."""

    def __init__(self, place: str, *needs: str) -> None:
        self._place, self._needs = place, needs

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, store: Store, _owner: type) -> T:
        made: T = late(self._place)(*(getattr(store, need) for need in self._needs))
        vars(store)[self._name] = made  # Found there from now on.
        return made


class Store:
    """An open database with its table groups as attributes. `write` combines changes to several of them in one
    commit."""

    pairing: Family[Pairing] = Family("hermes_agent.store.pairing:Pairing", "engine", "clock")
    facts: Family[Facts] = Family("hermes_agent.store.pairing:Facts", "engine")
    known_facts: Family[KnownFacts] = Family("hermes_agent.store.facts.facts:KnownFacts", "engine")
    fact_finding: Family[FactFinding] = Family("hermes_agent.store.facts.finding:FactFinding", "engine")
    learning: Family[Learning] = Family(
        "hermes_agent.store.learning.jobs:Learning", "engine", "clock", "workers", "pace"
    )
    cron_instants: Family[CronInstants] = Family(
        "hermes_agent.store.work.cron.jobs:CronInstants", "engine", "clock", "workers"
    )
    cron_jobs: Family[CronJobs] = Family("hermes_agent.store.work.cron.jobs:CronJobs", "engine", "clock")
    lessons: Family[Lessons] = Family("hermes_agent.store.learning.lessons:Lessons", "engine")
    proposals: Family[Proposals] = Family("hermes_agent.store.learning.proposals:Proposals", "engine")
    activity: Family[Activity] = Family("hermes_agent.store.work.activity:Activity", "engine", "workers")
    mandates: Family[Mandates] = Family("hermes_agent.store.work.children:Mandates", "engine")
    mcp: Family[McpCatalogue] = Family("hermes_agent.store.mcp.catalogue:McpCatalogue", "engine")
    children: Family[Children] = Family("hermes_agent.store.work.children:Children", "engine")
    goals: Family[Goals] = Family("hermes_agent.store.work.goals:Goals", "engine", "clock")
    goal_rounds: Family[GoalRounds] = Family("hermes_agent.store.work.goals:GoalRounds", "engine", "clock", "workers")
    search: Family[Search] = Family("hermes_agent.store.search:Search", "index", "engine", "clock")
    breaks: Family[Breaks] = Family("hermes_agent.store.breaks:Breaks", "engine", "prefixes")
    boards: Family[Boards] = Family("hermes_agent.store.work.board:Boards", "engine", "clock", "outbox")
    card_runs: Family[CardRuns] = Family(
        "hermes_agent.store.work.card_runs:CardRuns", "engine", "clock", "workers", "boards"
    )
    outbox: Family[Outbox] = Family("hermes_agent.store.outbox:Outbox", "engine", "clock", "workers")

    def __init__(self, opened: Engines, clock: Clock, timings: Timings, ids: Ids, machine: str = "") -> None:
        engine = self.engine = opened.engine
        self.notice = opened.notice
        self.clock = clock
        self.workers = Workers(engine, opened.presence, clock, timings, opened.schema)
        self._index = opened.index
        self.sessions = Sessions(engine, clock)
        self.prefixes = Prefixes(engine)
        self.history = History(engine)
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
    def index(self) -> Index:
        """The full-text index."""
        return self._index()

    @property
    def dialect(self) -> Dialect:
        """Which database this is."""
        return self.engine.dialect

    async def write(self, change: Change[T], *, durable: bool = True) -> T:
        """Commit a change (see `Engine`): it awaits only its transaction, and may run more than once."""
        return await self.engine.write(change, durable=durable)

    async def read(self, query: Change[T]) -> T:
        """Run a query (see `Engine`), concurrently with writers."""
        return await self.engine.read(query)

    async def close(self) -> None:
        """Deregister the worker and close the connections; changes in progress are committed first."""
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
    """Open the store at `sqlite:///path`, a plain path, or `postgresql://...`; creates it where missing. `home` is
    the number of the home whose rows it uses, `machine` the id of this copy of the home, where the database is
    not in it.

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
