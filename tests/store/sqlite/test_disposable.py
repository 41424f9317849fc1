"""A file that can be made again: one of another form is emptied, a damaged one replaced, a refused one a sentence."""

import asyncio
import logging
import threading
from pathlib import Path

import apsw
import pytest

from hermes_agent.core.errors import StoreError
from hermes_agent.store.sqlite.disposable import Disposable, Plan

SCHEMA = "CREATE TABLE thing (name TEXT); CREATE VIRTUAL TABLE word USING fts5(text);"


def plan(folder: Path, **more: object) -> Plan:
    return Plan(name="index of things", path=folder / "things.db", format=7, schema=SCHEMA, **more)


def names(connection: apsw.Connection) -> list[object]:
    return [name for (name,) in connection.execute("SELECT name FROM thing")]


def add(connection: apsw.Connection) -> None:
    connection.execute("INSERT INTO thing VALUES ('one')")


async def test_what_is_kept_is_there_for_the_next_process(tmp_path: Path):
    first, second = Disposable(plan(tmp_path)), Disposable(plan(tmp_path))
    await first.work(add)

    assert await second.work(names) == ["one"]

    await first.close()
    await second.close()
    assert await second.work(names) == ["one"]
    await second.close()


async def test_brief_work_is_done_at_once_and_while_the_thread_works_after_it(tmp_path: Path):
    file, goes_on = Disposable(plan(tmp_path)), threading.Event()
    here = threading.get_ident()
    await file.work(add)

    assert await file.work(lambda _: threading.get_ident(), brief=True) == here
    async with asyncio.TaskGroup() as group:
        long = group.create_task(file.work(lambda _: goes_on.wait(10)))
        await asyncio.sleep(0)
        brief = group.create_task(file.work(lambda _: (threading.get_ident(), goes_on.is_set()), brief=True))
        await asyncio.sleep(0)
        goes_on.set()
    thread, went_on = brief.result()

    assert long.result()
    assert thread != here
    assert went_on
    assert await file.work(lambda _: threading.get_ident(), brief=True) == here
    await file.close()


async def test_a_file_of_another_form_is_emptied_whatever_is_in_it(tmp_path: Path):
    old = apsw.Connection(str(tmp_path / "things.db"))
    old.execute("CREATE VIRTUAL TABLE word USING fts5(other, text); CREATE TABLE thing (x); CREATE TABLE gone (x);")
    old.execute("INSERT INTO thing VALUES (1); PRAGMA user_version = 99")
    old.close()
    file = Disposable(plan(tmp_path))

    assert await file.work(names) == []
    assert await file.work(lambda db: db.execute("SELECT count(*) FROM pragma_table_list WHERE name = 'gone'").get) == 0

    await file.close()


async def test_a_damaged_file_is_filled_again_before_the_work_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "things.db").write_bytes(b"no database" * 1000)
    file = Disposable(plan(tmp_path, filled=add))

    with caplog.at_level(logging.WARNING):
        assert await file.work(names) == ["one"]
        assert await file.work(names) == ["one"]

    await file.close()
    assert len(caplog.records) == 1
    assert "The index of things" in caplog.text
    assert "made again" in caplog.text


async def test_what_cannot_be_prepared_is_tried_again_with_the_next_work(tmp_path: Path):
    def attach(connection: apsw.Connection) -> None:
        connection.execute(f"ATTACH 'file:{tmp_path / 'log.db'}?mode=ro' AS log")

    file = Disposable(plan(tmp_path, opened=attach))
    with pytest.raises(StoreError):
        await file.work(names)

    apsw.Connection(str(tmp_path / "log.db")).execute("CREATE TABLE x (y)")

    assert await file.work(names) == []
    await file.close()
