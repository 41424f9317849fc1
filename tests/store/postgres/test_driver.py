"""What asyncpg raises, as errors of this program."""

import sys

import asyncpg
import pytest

from hermes_agent.core.errors import DatabaseUnreachable, DiskFull, StoreError
from hermes_agent.store.postgres.driver import explain, is_lost, link, unlink


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
