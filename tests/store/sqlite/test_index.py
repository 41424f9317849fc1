"""The index file: disposable, made again when it is damaged, never ahead of its log."""
# ruff: noqa: ASYNC240  (a test waits for its own files)

import logging
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from bench.recall import fill, taken
from hermes_agent.core.errors import StoreError
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.search import Scope, SearchTerms
from hermes_agent.store.sqlite.index import SqliteIndex
from tests.store.test_search import found, tell


@pytest.fixture
async def store(tmp_path: Path):
    store = await open_store(tmp_path / "hermes.db")
    yield store
    await store.close()


async def test_it_stands_beside_the_log_once_it_is_used(store: Store, tmp_path: Path):
    await tell(store, "s1", "a word")
    assert not (tmp_path / "index.db").exists()

    await found(store, "word")

    assert (tmp_path / "index.db").exists()


async def test_a_damaged_index_is_made_again_and_said_once(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    await tell(store, "s1", "a word")
    (tmp_path / "index.db").write_bytes(b"not a database at all" * 1000)

    with caplog.at_level(logging.WARNING):
        assert await found(store, "word") == [("s1", 1)]
        assert await found(store, "word") == [("s1", 1)]

    assert len(caplog.records) == 1
    assert "made again" in caplog.text


async def test_an_index_that_was_deleted_is_made_again(tmp_path: Path):
    first = await open_store(tmp_path / "hermes.db")
    await tell(first, "s1", "a word")
    await found(first, "word")
    await first.close()
    (tmp_path / "index.db").unlink()

    second = await open_store(tmp_path / "hermes.db")

    assert await found(second, "word") == [("s1", 1)]
    await second.close()


async def test_an_index_of_another_log_is_emptied(tmp_path: Path):
    first = await open_store(tmp_path / "hermes.db")
    await tell(first, "s1", *(f"old {number}" for number in range(10)))
    await found(first, "old")
    await first.close()
    for path in tmp_path.glob("hermes.db*"):
        path.unlink()

    second = await open_store(tmp_path / "hermes.db")
    await tell(second, "s1", "new")

    assert await found(second, "old") == []
    assert await found(second, "new") == [("s1", 1)]
    await second.close()


async def test_a_damaged_entry_is_passed_over(store: Store, tmp_path: Path):
    await tell(store, "s1", "a word")
    await tell(store, "s2", "a word")
    with closing(apsw.Connection(str(tmp_path / "hermes.db"))) as damage:
        damage.execute("UPDATE entry SET body = '{' WHERE session = 's1'")

    assert len(await found(store, "word")) == 1
    await tell(store, "s3", "a word")
    assert len(await found(store, "word")) == 2


async def test_a_failure_in_the_middle_leaves_the_index_as_it_was(store: Store, tmp_path: Path):
    await tell(store, "s1", "a word")
    await found(store, "word")
    await tell(store, "s2", "a word")
    damage = apsw.Connection(str(tmp_path / "hermes.db"))
    damage.execute("UPDATE session SET principal = x'00' WHERE id = 's2'")

    with pytest.raises(AttributeError):
        await found(store, "word")

    damage.execute("UPDATE session SET principal = 'cli:ann'")
    damage.close()
    assert len(await found(store, "word")) == 2


async def test_a_locked_index_is_a_sentence(tmp_path: Path):
    (tmp_path / "index.db").mkdir()
    store = await open_store(tmp_path / "hermes.db")

    with pytest.raises(StoreError):
        await found(store, "word")

    await store.close()


async def test_it_tells_which_messages_of_a_passage_hold_what_was_looked_for(store: Store, tmp_path: Path):
    await tell(store, "s1", "a red kettle", "nothing", "", "reds and kettles", "red", "a dog. 我们的数据库")
    index = SqliteIndex(tmp_path / "index.db", tmp_path / "hermes.db", busy_seconds=5.0)
    await index.catch_up()

    async def holding(*phrases: tuple[str, ...]) -> tuple[int, ...] | None:
        (extent,) = await index.passages(SearchTerms(some=phrases), Scope(principal="cli:ann"), 5)
        assert (extent.first, extent.last) == (1, 6)
        return extent.holding

    assert await holding(("red",)) == (1, 4, 5)
    assert await holding(("red", "kettl")) == (1,)
    assert await holding(("数", "据"), ("noth",)) == (2, 6)
    assert await holding(("kettl",), ("dog",)) == (1, 4, 6)
    await index.close()


async def test_a_passage_that_holds_what_is_left_out_is_not_found(store: Store, tmp_path: Path):
    await tell(store, "s1", "a red kettle")
    await tell(store, "s2", "a red dog")
    index = SqliteIndex(tmp_path / "index.db", tmp_path / "hermes.db", busy_seconds=5.0)
    await index.catch_up()

    found = await index.passages(SearchTerms(some=(("red",),), without=(("dog",),)), Scope(), 5)

    assert [each.session for each in found] == ["s1"]
    await index.close()


async def test_an_index_that_is_ahead_of_its_log_is_filled_again(store: Store, tmp_path: Path):
    await tell(store, "s1", "a red kettle")
    await found(store, "kettle")
    with closing(apsw.Connection(str(tmp_path / "index.db"))) as connection:
        connection.execute("UPDATE progress SET entry = 1000")

    assert await found(store, "kettle") == [("s1", 1)]


async def test_the_index_is_smaller_than_the_texts(tmp_path: Path):
    await (await open_store(tmp_path / "hermes.db")).close()
    texts = fill(tmp_path / "hermes.db", 4000)
    store = await open_store(tmp_path / "hermes.db")
    await store.search.catch_up()
    await store.close()

    assert taken(tmp_path) < 1.5 * texts


async def test_an_index_of_an_earlier_form_is_made_again(store: Store, tmp_path: Path):
    await tell(store, "s1", "a word")
    old = apsw.Connection(str(tmp_path / "index.db"))
    old.execute("CREATE VIRTUAL TABLE words USING fts5(text); CREATE TABLE progress (entry); PRAGMA user_version = 1")
    old.close()

    assert await found(store, "word") == [("s1", 1)]
