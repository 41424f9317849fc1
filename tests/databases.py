"""Fixtures: a store on an empty database of each dialect, and more stores on the same one."""

from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from hermes_agent.core.clock import Clock
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.workers import Timings
from tests.doubles.postgres import PostgresCluster, binaries

NOT_INSTALLED = "PostgreSQL is not installed here (apt-get install postgresql): only SQLite was tested"


class OpenAnother(Protocol):
    """Opens one more store on the test's database, as another process would; it is closed with the test."""

    def __call__(self, *, clock: Clock | None = None, timings: Timings | None = None) -> Awaitable[Store]: ...


@pytest.fixture(scope="session")
def cluster() -> Iterator[PostgresCluster]:
    """A PostgreSQL server of the tests' own."""
    programs = binaries()
    if programs is None:
        pytest.skip(NOT_INSTALLED)
    cluster = PostgresCluster(programs)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


def empty_database(dialect: str, request: pytest.FixtureRequest, folder: Path) -> str:
    """The URL of a database that nobody used before."""
    if dialect == "sqlite":
        return f"sqlite:///{folder / 'hermes.db'}"
    return str(request.getfixturevalue("cluster").fresh_url())


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, once per dialect."""
    return empty_database(request.param, request, tmp_path)


@asynccontextmanager
async def opening(url: str) -> AsyncIterator[OpenAnother]:
    opened: list[Store] = []

    async def open_one(*, clock: Clock | None = None, timings: Timings | None = None) -> Store:
        store = await open_store(url, clock=clock, timings=timings)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
async def open_another(database_url: str) -> AsyncIterator[OpenAnother]:
    """See `OpenAnother`; once per dialect."""
    async with opening(database_url) as open_one:
        yield open_one


@pytest.fixture
async def open_postgres(cluster: PostgresCluster) -> AsyncIterator[OpenAnother]:
    """See `OpenAnother`; for what only a server does."""
    async with opening(cluster.fresh_url()) as open_one:
        yield open_one


@pytest.fixture
async def store(open_another: OpenAnother) -> Store:
    """A store on an empty database."""
    return await open_another()
