"""What asyncpg raises, as errors of this program."""

import sys

import asyncpg
import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import DatabaseUnreachable, DiskFull, StoreError
from hermes_agent.store.database import open_store
from hermes_agent.store.postgres.driver import Pool, explain, is_lost, link, unlink
from tests.doubles.postgres import PostgresCluster


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (ConnectionResetError("x"), True),
        (TimeoutError(), True),
        (asyncpg.ConnectionDoesNotExistError("x"), True),
        (asyncpg.AdminShutdownError("x"), True),
        (asyncpg.CannotConnectNowError("x"), True),
        (asyncpg.TooManyConnectionsError("x"), True),
        (asyncpg.InterfaceError("connection is closed"), True),
        (asyncpg.InterfaceError("another operation is in progress"), False),
        (asyncpg.InternalClientError("cannot switch to state 12"), True),
        (asyncpg.UniqueViolationError("x"), False),
        (ValueError("x"), False),
    ],
)
def test_a_lost_connection_is_told_from_a_refusal(error: Exception, lost: bool):
    assert is_lost(error) is lost


def test_each_failure_has_its_name():
    own = LookupError("mine")

    assert type(explain(asyncpg.DiskFullError("x"))) is DiskFull
    assert type(explain(asyncpg.UniqueViolationError("twice"))) is StoreError
    assert explain(own) is own
    assert "pool_mode = transaction" in str(explain(asyncpg.DuplicatePreparedStatementError("plan0")))


async def test_without_the_driver_the_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "asyncpg", None)

    with pytest.raises(DatabaseUnreachable, match=r"hermes-runtime\[postgres\]"):
        await link("postgresql://x")


class Deaf:
    """A connection whose server does not answer."""

    terminated = False

    async def close(self) -> None:
        raise ConnectionResetError

    def terminate(self) -> None:
        self.terminated = True


async def test_a_good_bye_without_an_answer_hangs_up():
    deaf = Deaf()

    await unlink(deaf)

    assert deaf.terminated


@pytest.fixture
async def url(cluster: PostgresCluster) -> str:
    url = cluster.fresh_url()
    await (await open_store(url)).close()
    return url


async def test_a_connection_serves_again(url: str):
    pool = Pool(url, SystemClock())
    async with pool.connection() as first:
        await first.link.execute("SELECT 1")
    async with pool.connection() as second:
        assert second is first

    await pool.close()


async def test_one_that_was_left_in_the_middle_does_not(url: str):
    pool = Pool(url, SystemClock())
    with pytest.raises(LookupError):
        async with pool.connection() as first:
            raise LookupError

    assert first.link.is_closed()
    async with pool.connection() as second:
        assert second is not first
        second.link.terminate()
        await second.roll_back()
    await pool.close()


async def test_a_pool_leaves_no_marks_behind(url: str):
    pool = Pool(url, SystemClock())
    async with pool.connection() as pooled:
        assert len(await pooled.link.fetch("SELECT client FROM commit_mark")) == 1
    await pool.close()

    async with pool.connection() as pooled:
        assert len(await pooled.link.fetch("SELECT client FROM commit_mark")) == 1
        pool._idle.append(pooled)
        pooled.link.terminate()
    await pool.close()


async def test_a_connection_that_cannot_be_entered_is_not_kept(cluster: PostgresCluster):
    pool = Pool(cluster.fresh_url(), SystemClock())

    with pytest.raises(Exception, match="commit_mark"):
        async with pool.connection():
            pass
