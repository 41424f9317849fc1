"""Jobs of this process: one at a time, given back when it leaves, ended when they cannot be done."""

import asyncio

import pytest

from hermes_agent.agent.session import Session
from hermes_agent.core.clock import RandomIds, SystemClock
from hermes_agent.core.errors import HermesError, LostLease
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.learning.jobs import Jobs, Triggers, Unfinished, What, stretched
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Claim, Job, JobKind, JobState
from tests.databases import cluster, database_url, open_another, store

__all__ = ["cluster", "database_url", "open_another", "store"]


async def queue(store: Store, *names: str) -> None:
    for name in names:
        job = Job(
            id=name,
            kind=JobKind.REVIEW,
            session="s1",
            principal="cli:ann",
            what="skills",
            first=1,
            last=2,
            created=1.0,
        )
        await store.write(lambda tx, job=job: store.learning.queue(tx, job))


class Teller:
    def __init__(self, *, told: bool = True) -> None:
        self.jobs: list[str] = []
        self._told = told

    async def __call__(self, job: Job) -> bool:
        self.jobs.append(job.id)
        return self._told


async def keeps(claim: Claim) -> Account:
    return Account(kept=1, note=f"Learned {claim.job.id}.")


async def test_all_that_is_in_line_is_done_and_told_once(store: Store):
    await queue(store, "j1", "j2")
    teller = Teller()
    jobs = Jobs(store, {JobKind.REVIEW: keeps}, teller)

    assert await jobs.run() == 2
    assert await jobs.run() == 0

    assert teller.jobs == ["j1", "j2"]
    assert {job.state for job in await store.learning.list()} == {JobState.DONE}
    await jobs.close()


async def test_what_could_not_be_told_is_told_later(store: Store):
    await queue(store, "j1")
    await Jobs(store, {JobKind.REVIEW: keeps}, Teller(told=False)).run()
    later = Teller()

    await Jobs(store, {JobKind.REVIEW: keeps}, later).run()

    assert later.jobs == ["j1"]


async def test_what_fails_is_ended_with_its_reason(store: Store):
    await queue(store, "j1", "j2", "j3", "j4")
    kept = Account(calls=3, kept=1, cost=0.5, note="Learned one.")
    reasons = {
        "j1": HermesError("No model."),
        "j2": ValueError("odd"),
        "j3": Unfinished("Too long.", kept),
        "j4": LostLease("Another one."),
    }

    async def fails(claim: Claim) -> Account:
        raise reasons[claim.job.id]

    teller = Teller()
    await Jobs(store, {JobKind.REVIEW: fails}, teller).run()

    found = {job.id: job for job in await store.learning.list()}
    assert [found[name].state for name in ("j1", "j2", "j3", "j4")] == [*[JobState.FAILED] * 3, JobState.RUNNING]
    assert [found[name].account.note for name in ("j1", "j2")] == ["No model.", "ValueError: odd"]
    assert found["j3"].account == kept
    assert teller.jobs == ["j3"]


async def test_a_job_under_way_is_given_back_when_the_program_ends(store: Store):
    await queue(store, "j1")
    begun = asyncio.Event()

    async def hangs(claim: Claim) -> Account:
        begun.set()
        await asyncio.Event().wait()
        return Account()

    jobs = Jobs(store, {JobKind.REVIEW: hangs}, Teller())
    jobs.ring()
    jobs.ring()
    await begun.wait()
    await jobs.close()

    found = await store.learning.get("j1")
    assert found is not None
    assert (found.state, found.attempts, found.account.note) == (JobState.QUEUED, 0, "The program ended.")
    assert await Jobs(store, {JobKind.REVIEW: keeps}, Teller()).run() == 1


async def test_who_finishes_ends_the_job_under_way_and_leaves_the_rest_in_line(store: Store):
    await queue(store, "j1", "j2")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(claim: Claim) -> Account:
        begun.set()
        await go_on.wait()
        return await keeps(claim)

    jobs = Jobs(store, {JobKind.REVIEW: slowly}, Teller())
    jobs.ring()
    await begun.wait()
    finishing = asyncio.ensure_future(jobs.finish())
    go_on.set()
    await finishing

    assert sorted(job.state.value for job in await store.learning.list()) == ["done", "queued"]


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
