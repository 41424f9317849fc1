"""Opens a SQLite database: builds its engine, presence and index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.core.clock import Clock
from hermes_agent.host.late import late
from hermes_agent.store.migrations import newest
from hermes_agent.store.sqlite.engine import SqliteEngine
from hermes_agent.store.sqlite.opening import STEPS, discard
from hermes_agent.store.sqlite.presence import SqlitePresence
from hermes_agent.store.workers import Engines, Schema, Timings

if TYPE_CHECKING:
    from hermes_agent.store.sqlite.index import SqliteIndex

INDEX = "index.db"
FORMAT = "SELECT user_version FROM pragma_user_version"
SQLITE_INDEX = "hermes_agent.store.sqlite.index:SqliteIndex"


async def open_sqlite(place: str, clock: Clock, timings: Timings, home: int) -> Engines:
    """Open the file at `place`; creates it where missing. Raises a `StoreError`."""
    path = _absolute(place)
    engine = SqliteEngine(path, busy_seconds=timings.busy, lasting=timings.lasting, home=home)
    await engine.start()
    if engine.notice:  # The index is one of another log.
        discard(path.with_name(INDEX))

    def index() -> SqliteIndex:
        made: SqliteIndex = late(SQLITE_INDEX)(path.with_name(INDEX), path, busy_seconds=timings.busy)
        return made

    presence = SqlitePresence(path.parent, clock)
    return Engines(
        engine=engine,
        presence=presence,
        schema=Schema(sql=FORMAT, newest=newest(STEPS)),
        index=index,
        notice=engine.notice,
    )


def _absolute(place: str) -> Path:
    return Path(place).absolute()
