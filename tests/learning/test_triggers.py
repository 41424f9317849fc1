"""When a review is due."""

import pytest

from hermes_agent.agent.session import Session
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.core.ids import RandomIds
from hermes_agent.learning.triggers import Triggers, What, stretched
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, JobState
from tests.databases import cluster, database_url, open_another, store

__all__ = ["cluster", "database_url", "open_another", "store"]

ENDED = RunEnded(outcome=Outcome.ANSWERED, text="Done.", turns=1)


class Bell:
    def __init__(self) -> None:
        self.rings = 0

    def __call__(self) -> None:
        self.rings += 1


async def ends(
    store: Store, rounds: int, heard: int, ended: RunEnded = ENDED, intervals: dict[What, int] | None = None
) -> int:
    """The end of a run with so many rounds and messages; how often it rang."""
    bell = Bell()
    triggers = Triggers(
        store=store,
        clock=SystemClock(),
        ids=RandomIds(),
        principal="cli:ann",
        intervals={What.SKILLS: 10, What.MEMORY: 3} if intervals is None else intervals,
        rung=bell,
    )
    session = Session(id="s1", number=41, rounds=rounds, heard=heard)
    for change in triggers.changes(session, ended):
        await store.write(change)
    return bell.rings


async def queued(store: Store) -> list[tuple[str, int]]:
    return [(job.what, job.last) for job in await store.learning.list()]


async def test_runs_add_up_until_a_review_is_due(store: Store):
    assert await ends(store, 6, 1) == 0
    assert await queued(store) == []

    assert await ends(store, 6, 1) == 1
    assert await queued(store) == [("skills", 42)]
    assert await store.pace.counted("s1") == (0, 2)


async def test_both_kinds_share_one_review(store: Store):
    await ends(store, 12, 3)
    assert await queued(store) == [("skills+memory", 42)]
    assert await store.pace.counted("s1") == (0, 0)


@pytest.mark.parametrize("outcome", [Outcome.STOPPED, Outcome.FAILED, Outcome.LIMIT])
async def test_a_run_without_its_whole_reply_is_counted_and_starts_no_review(store: Store, outcome: Outcome):
    await ends(store, 12, 3, RunEnded(outcome=outcome, text="no", turns=1))
    assert await queued(store) == []
    assert await store.pace.counted("s1") == (12, 3)


async def test_without_the_tools_nothing_is_counted(store: Store):
    assert await ends(store, 12, 3, intervals={}) == 0
    assert await store.pace.counted("s1") == (0, 0)


async def test_a_later_run_rings_for_what_is_still_in_line(store: Store):
    await ends(store, 12, 0)
    assert await ends(store, 0, 1) == 1


async def test_empty_reviews_stretch_the_interval_and_a_useful_one_resets_it(store: Store):
    for kept, due_after in ((0, 10), (0, 10), (0, 20), (1, 40), (0, 10)):
        await ends(store, due_after - 1, 0)
        assert await store.learning.claim() is None
        await ends(store, 1, 0)
        claim = await store.learning.claim()
        assert claim is not None
        await store.learning.end(claim, JobState.DONE, Account(kept=kept))


def test_the_interval_doubles_up_to_a_limit():
    assert [stretched(10, empty) for empty in (0, 1, 2, 3, 100)] == [10, 10, 20, 40, 640]
