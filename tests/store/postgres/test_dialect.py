"""The way into PostgreSQL: migrated once, refused where it is later than this program."""

import asyncio
from pathlib import Path

import pytest

from hermes_agent.core.errors import DatabaseTooNew, StoreError
from hermes_agent.store.database import open_store
from hermes_agent.store.migrations import newest
from hermes_agent.store.postgres.dialect import STEPS, migrate
from hermes_agent.store.postgres.driver import link, unlink
from tests.doubles.postgres import PostgresCluster


async def test_many_processes_migrate_it_once(cluster: PostgresCluster):
    url = cluster.fresh_url()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(open_store(url)) for _ in range(4)]

    for task in tasks:
        assert await task.result().sessions.list() == []
        await task.result().close()


async def test_a_later_databases_format_is_refused(cluster: PostgresCluster):
    url = cluster.fresh_url()
    await (await open_store(url)).close()
    connection = await link(url)
    await connection.execute("UPDATE hermes_format SET version = 999")
    await unlink(connection)

    with pytest.raises(DatabaseTooNew, match="999"):
        await open_store(url)


async def test_a_migration_that_fails_changes_nothing(cluster: PostgresCluster, tmp_path: Path):
    url = cluster.fresh_url()
    await (await open_store(url)).close()
    (tmp_path / "0900_bad.sql").write_text("CREATE TABLE more (a int); SELECT nothing;", encoding="utf-8")
    connection = await link(url)

    with pytest.raises(Exception, match="nothing"):
        await migrate(connection, tmp_path)

    await unlink(connection)
    again = await link(url)
    assert (await again.fetch("SELECT version FROM hermes_format"))[0][0] == newest(STEPS)
    assert (await again.fetch("SELECT to_regclass('more')"))[0][0] is None
    await unlink(again)


async def test_a_database_that_refuses_is_a_sentence(cluster: PostgresCluster):
    with pytest.raises(StoreError, match="refused"):
        await open_store(cluster.url.replace("/postgres?", "/nowhere?"))
