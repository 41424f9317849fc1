"""Statements that are declared as methods, and records that know their columns."""

from dataclasses import dataclass, replace
from enum import StrEnum

from hermes_agent.store.database import Store
from hermes_agent.store.transaction import Columns, Has, Keyed, Many, One, Tables, Within, Write
from tests.store.made import add, session


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    name: str = ""


@dataclass(frozen=True)
class Record:
    id: str
    open: bool = False
    colour: Colour = Colour.RED
    words: tuple[str, ...] = ()
    inner: Inner = Inner()
    body: bytes | None = None
    at: float | None = None


RECORD = Record(id="a\0b", open=True, words=("x", "y"), inner=Inner(name="n"), body=b"\1", at=1.5)
NAMES = "id, open, colour, words, inner, body, at"


class Titles(Tables):
    of = One[[str], str]("SELECT title FROM session WHERE id = $1")
    all = Many[[], str]("SELECT id FROM session ORDER BY id")
    by_id = Keyed[[], str]("SELECT id, title FROM session")
    known = Has[[str]]("SELECT 1 FROM session WHERE id = $1", brief=True)
    name = Write[[str, str]]("UPDATE session SET title = $2 WHERE id = $1")
    clear = Within[[str]]("UPDATE session SET title = '' WHERE id = $1")


def test_a_record_comes_back_from_its_columns_as_it_was_but_for_what_no_column_holds():
    columns = Columns(Record, NAMES)
    row = columns.of(RECORD)

    assert row == ("a\ufffdb", 1, "red", '["x","y"]', '{"name":"n"}', b"\1", 1.5)
    assert columns(row) == replace(RECORD, id="a\ufffdb")
    assert columns((*columns.of(Record(id="c")), "more")) == Record(id="c")


def test_fields_without_a_column_are_given_beside_the_row():
    assert Columns(Record, "id, at")(("a", 2.0, "other"), inner=Inner(name="m")) == Record(
        id="a", at=2.0, inner=Inner(name="m")
    )


async def test_a_declared_statement_asks_and_changes_like_one_that_is_written_out(store: Store):
    titles = Titles(store.engine)
    await add(store, session("s1", title="one"))
    await add(store, session("s2", title="two"))

    assert await titles.of("s1") == "one"
    assert await titles.of("s3") is None
    assert await titles.all() == ["s1", "s2"]
    assert await titles.by_id() == {"s1": "one", "s2": "two"}
    assert (await titles.known("s2"), await titles.known("s3")) == (True, False)
    assert (await titles.name("s1", "a\0"), await titles.name("s3", "b")) == (1, 0)
    assert await titles.of("s1") == "a\ufffd"
    assert await store.write(lambda tx: titles.clear(tx, "s1")) == 1
    assert await titles.of("s1") == ""
