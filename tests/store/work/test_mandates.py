"""A session keeps the mandate that it was created with."""

import pytest

from hermes_agent.core.effects import Capability
from hermes_agent.core.mandate import Mandate, Work
from hermes_agent.store.sessions import Session

RECORD = Session(id="s", principal="p", conversation="c", surface="child", created=0.0, updated=0.0)
MANDATE = Mandate(kind=Work.CHILD, toolsets=("files",), denied=(Capability.NET,), until=5.5, money=1)


@pytest.fixture
async def with_session(store):
    await store.write(lambda tx: store.sessions.create(tx, RECORD))
    return store


async def test_a_mandate_comes_back_as_it_was_written_and_never_changes(with_session):
    store = with_session
    await store.write(lambda tx: store.mandates.put(tx, "s", MANDATE))
    await store.write(lambda tx: store.mandates.put(tx, "s", Mandate(kind=Work.CHILD)))

    assert await store.mandates.of("s") == MANDATE
    assert await store.mandates.of("other") is None


async def test_it_goes_with_its_session(with_session):
    store = with_session
    await store.write(lambda tx: store.mandates.put(tx, "s", MANDATE))
    await store.sessions.delete("s")

    assert await store.mandates.of("s") is None
