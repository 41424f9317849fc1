"""Jobs of this process: one at a time, given back when it leaves, ended when they cannot be done."""

import asyncio

from hermes_agent.core.errors import HermesError, LostLease
from hermes_agent.learning.jobs import Jobs, Unfinished
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
