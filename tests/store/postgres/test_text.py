"""Values written into a statement: PostgreSQL reads each as what it was."""

from collections.abc import AsyncIterator

import pytest

from hermes_agent.store.postgres.driver import Link, executing, link, literal, query_of, unlink, vector_of
from tests.doubles.postgres import PostgresCluster

VALUES = ["plain", "it's", "back\\slash", "'; DROP TABLE entry; --", "\\'", "名前 🎉", "", 7, -1.5, b"\x00\xff'", None]


@pytest.fixture
async def connection(cluster: PostgresCluster) -> AsyncIterator[Link]:
    connection = await link(cluster.fresh_url())
    yield connection
    await unlink(connection)


@pytest.mark.parametrize("strings", ["on", "off"])
@pytest.mark.parametrize("value", VALUES, ids=repr)
async def test_a_literal_is_read_back_as_it_was(connection: Link, value: str | float | bytes | None, strings: str):
    await connection.execute(f"SET standard_conforming_strings = {strings}")
    await connection.execute("SET escape_string_warning = off")

    rows = await connection.fetch(f"SELECT {literal(value)} AS it")

    assert (float(rows[0][0]) if isinstance(value, float) else rows[0][0]) == value


async def test_a_prepared_statement_is_called_with_its_values(connection: Link):
    await connection.execute("CREATE TABLE kept (a text, b integer)")
    await connection.execute("PREPARE keep AS INSERT INTO kept VALUES ($1, $2)")

    await connection.execute(executing("keep", ("it's $2", 7)))

    assert [tuple(row) for row in await connection.fetch("SELECT a, b FROM kept")] == [("it's $2", 7)]


def test_terms_have_their_positions_and_a_phrase_its_order():
    assert vector_of(["cat", "mina"]) == "'cat':1 'mina':2"
    assert vector_of(["a"] * 20_000).endswith("'a':16383")
    assert query_of(("東", "京")) == "('東' <-> '京')"
