"""The shared SQL as SQLite reads it, and coroutines that never suspend."""

import pytest

from hermes_agent.store.sqlite.engine import drive, sqlite_text


def test_parameters_are_numbered_and_row_locks_are_dropped():
    shared = "SELECT a FROM t WHERE b = $1 AND c = $12 LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED"

    assert sqlite_text(shared) == "SELECT a FROM t WHERE b = ?1 AND c = ?12 LIMIT 1"
    assert sqlite_text("SELECT 1 FOR NO KEY UPDATE") == "SELECT 1"
    assert sqlite_text(shared) is sqlite_text(shared)


def test_a_coroutine_is_driven_to_its_value():
    async def two() -> int:
        return 2

    async def four() -> int:
        return await two() + await two()

    assert drive(four()) == 4


def test_a_coroutine_that_suspends_is_a_defect():
    class Waits:
        def __await__(self):
            yield

    with pytest.raises(RuntimeError, match="only its transaction"):
        drive(Waits())
