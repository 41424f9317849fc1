"""Counts and jobs of what is learned, on both databases."""

from dataclasses import replace

import pytest

from hermes_agent.core.errors import LostLease
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import MOST_ATTEMPTS, Account, Job, JobKind, JobState, Upkept
from hermes_agent.store.versions import Author, Change, Kind
from tests.databases import OpenAnother
from tests.store.made import add, session


def job(name: str = "j1", *, session: str = "s1", what: str = "skills+memory", created: float = 1.0) -> Job:
    return Job(
        id=name,
        kind=JobKind.REVIEW,
        session=session,
        principal="cli:ann",
        what=what,
        first=3,
        last=9,
        created=created,
    )


async def queued(store: Store, *jobs: Job) -> None:
    for each in jobs:
        await store.write(lambda tx, each=each: store.learning.queue(tx, each))


async def empty(store: Store) -> dict[str, int]:
    return await store.read(lambda tx: store.pace.empty(tx, "cli:ann"))


async def test_a_job_is_claimed_once_the_oldest_first(store: Store, open_another: OpenAnother):
    await queued(store, job("j2", created=2.0), job("j1"), job("j1", session="other"))
    other = await open_another()

    first, second, third = [await each.learning.claim() for each in (store, other, store)]

    assert first is not None
    assert second is not None
    assert (first.job.id, second.job.id, third) == ("j1", "j2", None)
    assert first.job.state is JobState.RUNNING
    assert first.job.subjects == {"skills", "memory"}


async def test_overlaps_are_kept_with_the_end_of_a_review_and_go_with_that_of_a_pass(
    store: Store, open_another: OpenAnother
):
    await queued(store, job(), job("j2", session="s2"), job("j3"))
    first, second, third = [await store.learning.claim() for _ in range(3)]
    assert first is not None
    assert second is not None
    assert third is not None
    seen = Account(overlaps=(("brew-tea", "make-tea"), ("a", "b")))
    await store.learning.release(second)
    await store.learning.end(second, JobState.DONE, seen)
    assert await store.learning.overlaps() == []  # Nothing of a review that is another's.

    await store.learning.end(first, JobState.DONE, seen)
    await store.learning.end(first, JobState.DONE, seen)
    again = await store.learning.claim()
    assert again is not None
    await store.learning.end(again, JobState.DONE, seen)
    assert await store.learning.overlaps() == [("a", "b"), ("brew-tea", "make-tea")]

    await store.learning.end(third, JobState.DONE, Account(considered=(("a", "b"),)))
    assert await store.learning.overlaps() == [("brew-tea", "make-tea")]


async def test_only_the_kinds_asked_for_are_claimed(store: Store):
    await queued(store, job())

    assert await store.learning.claim([JobKind.CURATOR]) is None
    assert await store.learning.claim([JobKind.CURATOR, JobKind.REVIEW]) is not None


async def test_a_job_waits_or_not(store: Store):
    assert not await store.read(store.learning.ready)

    await queued(store, job())
    assert await store.read(store.learning.ready)
    await store.learning.claim()

    assert not await store.read(store.learning.ready)


async def test_what_a_worker_leaves_is_taken_by_the_next(store: Store, open_another: OpenAnother):
    await queued(store, job())
    gone = await open_another()
    lost = await gone.learning.claim()
    assert lost is not None
    await gone.close()

    again = await store.learning.claim()

    assert again is not None
    assert (again.job.id, again.job.attempts, again.lease.epoch) == ("j1", 2, lost.lease.epoch + 1)
    with pytest.raises(LostLease):
        await store.learning.check(lost)
    await store.learning.check(again)


async def test_a_job_that_was_let_go_is_in_line_again(store: Store):
    await queued(store, job())
    claim = await store.learning.claim()
    assert claim is not None

    await store.learning.release(claim, "this process leaves")
    found = await store.learning.get("j1")

    assert found is not None
    assert (found.state, found.attempts, found.account.note) == (JobState.QUEUED, 0, "this process leaves")
    assert await store.learning.claim() is not None


async def test_a_job_that_keeps_failing_is_given_up(store: Store):
    await queued(store, job())
    for _ in range(MOST_ATTEMPTS):
        claim = await store.learning.claim()
        assert claim is not None
        await store.learning.release(claim, "no", counts=True)

    assert await store.learning.claim() is None
    found = await store.learning.get("j1")

    assert found is not None
    assert found.state is JobState.FAILED
    assert found.ended is not None


async def test_a_job_ends_with_its_account_once(store: Store):
    await queued(store, job())
    claim = await store.learning.claim()
    assert claim is not None
    account = Account(
        calls=3, input=900, cached=800, output=50, cost=0.25, kept=1, waiting=2, refused=4, note="One skill."
    )

    await store.learning.end(claim, JobState.DONE, account)
    await store.learning.end(claim, JobState.FAILED, Account())
    found = await store.learning.get("j1")

    assert found is not None
    assert (found.state, found.account) == (JobState.DONE, account)
    assert await store.learning.get("j9") is None


async def test_empty_reviews_are_counted_until_one_brings_something(store: Store):
    for name, kept in (("j1", 0), ("j2", 0), ("j3", 1)):
        await queued(store, job(name, what="skills"))
        claim = await store.learning.claim()
        assert claim is not None
        await store.learning.end(claim, JobState.DONE, Account(kept=kept))
        assert await empty(store) == {"skills": {"j1": 1, "j2": 2, "j3": 0}[name]}


async def test_a_pass_of_the_curator_counts_where_a_model_was_asked(store: Store):
    accounts = [Upkept(what="upkeep", brought=False), Account(), Upkept(what="upkeep", brought=False, kept=1)]
    for number, account in enumerate(accounts):
        await queued(store, replace(job(f"j{number}", what="states+upkeep"), kind=JobKind.CURATOR))
        claim = await store.learning.claim()
        assert claim is not None
        await store.learning.end(claim, JobState.DONE, account)
        await store.learning.end(claim, JobState.DONE, account)

    assert await empty(store) == {"upkeep": 2}


async def test_jobs_are_listed_the_newest_first(store: Store):
    await queued(store, job("j1"), job("j2", created=2.0), job("j3", session="s2", created=3.0))

    assert [each.id for each in await store.learning.list()] == ["j3", "j2", "j1"]
    assert [each.id for each in await store.learning.list(JobKind.REVIEW, "s1", limit=1)] == ["j2"]
    assert [each.id for each in await store.learning.list(since=3.0)] == ["j3"]
    assert await store.learning.list(JobKind.CURATOR) == []


async def test_what_a_conversation_was_not_told_is_found_until_it_is(store: Store):
    await queued(store, job("j1"), job("j2"))
    for kept in (1, 0):
        claim = await store.learning.claim()
        assert claim is not None
        await store.learning.end(claim, JobState.DONE, Account(kept=kept))

    assert [each.id for each in await store.learning.untold()] == ["j1"]
    await store.learning.mark_reported("j1")

    assert await store.learning.untold() == []
    found = await store.learning.get("j1")
    assert found is not None
    assert found.told


async def test_deleting_a_conversation_drops_its_reviews_and_asks_for_a_retraction(store: Store):
    await add(store, session("s1"))
    await add(store, session("s2"))
    await queued(store, job("j1"))
    change = Change(
        kind=Kind.SKILL,
        item="a/SKILL.md",
        at=1.0,
        author=Author.BACKGROUND,
        action="create",
        before=None,
        after=b"x",
        session="s1",
    )
    await store.write(lambda tx: store.versions.record(tx, change))
    await store.write(lambda tx: store.pace.count(tx, "s1", 4, 1))

    await store.sessions.delete("s1")
    await store.sessions.delete("s2")

    found = {each.id: (each.kind, each.state) for each in await store.learning.list()}
    assert found == {
        "j1": (JobKind.REVIEW, JobState.DROPPED),
        "s1.retract": (JobKind.RETRACT, JobState.QUEUED),
    }
    assert await store.pace.counted("s1") == (0, 0)


async def test_counts_grow_until_they_are_reset(store: Store):
    assert await store.pace.counted("s1") == (0, 0)

    await store.write(lambda tx: store.pace.count(tx, "s1", 4, 1))
    assert await store.write(lambda tx: store.pace.count(tx, "s1", 3, 2)) == (7, 3)
    await store.write(lambda tx: store.pace.reset(tx, "s1", "skills"))
    assert await store.pace.counted("s1") == (0, 3)
    await store.write(lambda tx: store.pace.reset(tx, "s1", "memory"))

    assert await store.pace.counted("s1") == (0, 0)


async def test_empty_reviews_are_counted_by_person(store: Store):
    for principal, empty in (("ann", True), ("ann", True), ("bob", True), ("bob", False)):
        await store.write(lambda tx, p=principal, e=empty: store.pace.note(tx, p, "skills", empty=e))

    assert await store.read(lambda tx: store.pace.empty(tx, "ann")) == {"skills": 2}
    assert await store.read(lambda tx: store.pace.empty(tx, "bob")) == {"skills": 0}
