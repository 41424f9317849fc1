"""What waits to be learned, on both databases."""

from dataclasses import replace

from hermes_agent.store.database import Store
from hermes_agent.store.learning.proposals import Proposal, ProposalState, Why
from hermes_agent.store.versions import Kind

ONE = Proposal(
    why=Why.OUTSIDE,
    kind=Kind.SKILL,
    item="deploy",
    action="create",
    call='{"name":"skill_manage","arguments":{}}',
    key="j1-1",
    job="j1",
    session="s1",
    principal="cli:ann",
    first=2,
    last=8,
    evidence='{"messages":[3]}',
    taint="web_extract",
    at=5.0,
    expires=50.0,
    base=b"\xff",
)


async def kept(store: Store, proposal: Proposal) -> int:
    return await store.write(lambda tx: store.proposals.put(tx, proposal))


async def ended(store: Store, number: int, state: ProposalState, version: int | None = None) -> bool:
    return await store.write(lambda tx: store.proposals.end(tx, number, state, 9.0, version))


async def test_a_proposal_comes_back_as_it_was_put_and_once(store: Store):
    number = await kept(store, ONE)

    assert await kept(store, replace(ONE, item="other")) == number
    found = await store.proposals.get(number)

    assert found == replace(ONE, id=number)
    assert found.name == f"p{number}"
    assert await store.proposals.get(number + 1) is None


async def test_what_waits_is_listed_by_its_reason(store: Store):
    first = await kept(store, ONE)
    second = await kept(store, replace(ONE, key="j1-2", why=Why.ASKED, base=None))

    assert [each.id for each in await store.proposals.waiting()] == [first, second]
    assert [each.id for each in await store.proposals.waiting(Why.ASKED)] == [second]


async def test_what_was_rejected_is_found_by_its_item(store: Store):
    first = await kept(store, ONE)
    await kept(store, replace(ONE, key="j1-2"))
    await store.write(lambda tx: store.proposals.end(tx, first, ProposalState.REJECTED, 1.0))

    assert [each.id for each in await store.proposals.rejected(ONE.kind, ONE.item)] == [first]
    assert await store.proposals.rejected(ONE.kind, "other") == []


async def test_a_proposal_is_applied_by_one_and_ended_once(store: Store):
    number = await kept(store, ONE)

    assert await store.proposals.intend(number)
    assert not await store.proposals.intend(number)
    await store.proposals.wait_on(number)
    assert await store.proposals.intend(number)
    assert await ended(store, number, ProposalState.APPROVED, 7)
    assert not await ended(store, number, ProposalState.REJECTED)

    found = await store.proposals.get(number)
    assert found is not None
    assert (found.state, found.version, found.ended) == (ProposalState.APPROVED, 7, 9.0)
    assert await store.proposals.waiting() == []


async def test_what_waited_too_long_expires(store: Store):
    number = await kept(store, ONE)
    assert await store.proposals.expire(49.0) == 0

    assert await store.proposals.expire(50.0) == 1

    found = await store.proposals.get(number)
    assert found is not None
    assert found.state is ProposalState.EXPIRED
