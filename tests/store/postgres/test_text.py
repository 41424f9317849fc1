"""Values written into a statement: PostgreSQL reads each as what it was."""

from collections.abc import AsyncIterator

import pytest

from hermes_agent.store.postgres.driver import Link, link, unlink
from hermes_agent.store.postgres.text import inlined, literal
from hermes_agent.testing.postgres import PostgresCluster

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


def test_each_parameter_stands_where_its_number_is():
    assert inlined("SELECT $2, $1, $2", ("a", 1)) == "SELECT 1, E'a', 1"


def test_a_dollar_in_a_value_is_no_parameter():
    assert inlined("SELECT $1, $2", ("$2", "x")) == "SELECT E'$2', E'x'"
