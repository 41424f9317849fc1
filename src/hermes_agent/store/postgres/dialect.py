"""Opens a PostgreSQL database: connects, migrates, and builds its engine, presence and index."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import DatabaseTooNew, DatabaseUnreachable
from hermes_agent.store.migrations import newest, steps_after
from hermes_agent.store.postgres.driver import Link, explain, is_lost, link, unlink
from hermes_agent.store.postgres.engine import PostgresEngine, PostgresPresence
from hermes_agent.store.postgres.index import PostgresIndex, adopt
from hermes_agent.store.workers import Engines, Schema, Timings

STEPS = Path(__file__).parent.parent / "sql" / "postgres"
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(4738299, hashtext(current_schema()))"
# Reads the catalogue itself: to_regclass may answer from a cache that knows nothing of a commit just made.
EXISTS = (
    "SELECT EXISTS (SELECT 1 FROM pg_class "
    "WHERE relname = 'hermes_format' AND relnamespace = CAST(current_schema() AS regnamespace))"
)
CREATE = "CREATE TABLE hermes_format (version bigint NOT NULL); INSERT INTO hermes_format VALUES (0)"
VERSION = "SELECT version FROM hermes_format"
SET_VERSION = "UPDATE hermes_format SET version = $1"
SCHEMA = "SELECT current_schema()"
IS_STANDBY = "SELECT pg_is_in_recovery()"


async def open_postgres(place: str, clock: Clock, timings: Timings, home: int) -> Engines:
    """Connect to the server at the URL and migrate the database. Raises a `StoreError`; never falls back."""
    try:
        connection = await link(place)
        try:
            if (await connection.fetch(IS_STANDBY))[0][0]:
                raise DatabaseUnreachable(
                    "store.url leads to a PostgreSQL standby, which takes no changes: name the primary."
                )
            await migrate(connection)
            await adopt(connection)
            schema = (await connection.fetch(SCHEMA))[0][0]
        finally:
            await unlink(connection)
    except Exception as error:
        if is_lost(error):
            raise DatabaseUnreachable(f"The PostgreSQL database of store.url cannot be reached: {error}") from error
        raise explain(error) from error
    engine = PostgresEngine(place, f"hermes_{schema}", clock, home=home, patience=timings.busy)
    presence = PostgresPresence(engine, clock, grace=timings.grace, blink=timings.blink)
    return Engines(
        engine=engine,
        presence=presence,
        schema=Schema(sql=VERSION, newest=newest(STEPS)),
        index=lambda: PostgresIndex(engine),
    )


async def migrate(connection: Link, steps: Path = STEPS) -> None:
    """Apply missing migrations in one transaction. Raises `DatabaseTooNew`."""
    if await _version(connection) == newest(steps):
        return
    await connection.execute("BEGIN")
    await connection.fetch(ONE_AT_A_TIME)
    current = await _version(connection)
    if current > newest(steps):
        raise DatabaseTooNew(
            f"The database was made by a later version of Hermes (its format is {current}, this one knows "
            f"{newest(steps)}). Update Hermes."
        )
    if current < 0:
        await connection.execute(CREATE)
    for step in steps_after(steps, max(current, 0)):
        await connection.execute(step.sql)
        await connection.execute(SET_VERSION, step.number)
    await connection.execute("COMMIT")


async def _version(connection: Link) -> int:
    if not (await connection.fetch(EXISTS))[0][0]:
        return -1
    return int((await connection.fetch(VERSION))[0][0])
