"""The schema expands first and contracts a release later: what the version before asks of a database still holds."""

import json

import apsw

from hermes_agent.store.database import open_store
from hermes_agent.store.migrations import newest
from hermes_agent.store.postgres.driver import link, sqlstate
from hermes_agent.store.sqlite.engine import sqlite_text
from hermes_agent.store.sqlite.opening import STEPS
from hermes_agent.store.transaction import Value
from tests.store.schema.recorder import STATEMENTS

NEWEST = newest(STEPS)
BEFORE = max(number for each in STATEMENTS.glob("*.json") if (number := int(each.stem)) < NEWEST)
"""The last migration of the release before: one release may bring several."""
# Statements that a migration breaks all the same, by the words that they hold, and why. A process of the version before
# stops where it finds a later format; these say what keeps a release from being taken back.
BREAKS: dict[int, dict[str, tuple[str, ...]]] = {}


def statements(dialect: str) -> list[tuple[str, list[Value]]]:
    rows = json.loads((STATEMENTS / f"{BEFORE:04}.json").read_text(encoding="ascii"))
    return [
        (row["sql"].replace("$home", "1"), [_value(each) for each in row["params"]])
        for row in rows
        if dialect in row["dialects"]
    ]


def _value(value: Value | dict[str, str]) -> Value:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


def told() -> list[str]:
    new = (BREAKS.get(number, {}) for number in range(BEFORE + 1, NEWEST + 1))
    return [words for why in new for each in why.values() for words in each]


async def refused_by_sqlite(url: str) -> set[str]:
    connection, refused = apsw.Connection(url.removeprefix("sqlite:///")), set()
    for sql, params in statements("sqlite"):
        connection.execute("BEGIN")
        try:
            connection.execute(sqlite_text(sql), params).fetchall()
        except apsw.ConstraintError:
            pass  # The database is empty: nothing that a row names is there.
        except apsw.Error:
            refused.add(sql)
        connection.execute("ROLLBACK")
    connection.close()
    return refused


async def refused_by_postgres(url: str) -> set[str]:
    connection, refused = await link(url), set()
    for sql, params in statements("postgres"):
        await connection.execute("BEGIN")
        try:
            await connection.fetch(sql, *params)
        except Exception as error:  # noqa: BLE001  the driver's errors are told apart by their number
            if not sqlstate(error).startswith("23"):
                refused.add(sql)
        await connection.execute("ROLLBACK")
    await connection.close()
    return refused


async def test_the_statements_of_the_version_before_run_on_this_schema(database_url: str):
    await (await open_store(database_url)).close()
    on = refused_by_sqlite if database_url.startswith("sqlite") else refused_by_postgres

    refused = await on(database_url)

    assert {sql for sql in refused if not any(words in sql for words in told())} == set()
    assert refused or not told(), "nothing breaks: take the table of what does away"


def test_the_statements_of_the_version_before_are_kept():
    """`tests/store/schema/recorder.py` tells how they are written."""
    kept = [sql for dialect in ("sqlite", "postgres") for sql, _ in statements(dialect)]

    assert len(kept) > 300
    assert [words for words in told() if not any(words in sql for sql in kept)] == []
