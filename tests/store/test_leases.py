"""The fence: only the lane's owner, under its newest epoch, writes."""

from dataclasses import replace

import pytest

from hermes_agent.core.errors import LostLease
from hermes_agent.store.database import Store
from hermes_agent.store.leases import Lease, fence
from tests.store.made import QUEUES, claimed


async def test_the_owner_passes(store: Store):
    lease = await claimed(store)

    await store.write(lambda tx: fence(tx, lease))


@pytest.mark.parametrize("change", [{"epoch": 0}, {"worker": "somebody"}])
async def test_another_epoch_or_worker_does_not(store: Store, change: dict[str, object]):
    lease = replace(await claimed(store), **change)

    with pytest.raises(LostLease):
        await store.write(lambda tx: fence(tx, lease))


async def test_each_claim_has_a_higher_epoch(store: Store):
    first = await claimed(store)
    await store.lanes.release(first)

    second = await store.lanes.claim(QUEUES)

    assert second is not None
    assert second.epoch > first.epoch
    with pytest.raises(LostLease):
        await store.write(lambda tx: fence(tx, first))


async def test_a_transaction_asks_once(store: Store):
    lease = await claimed(store)

    async def change(tx):
        await fence(tx, lease)
        await tx.run("UPDATE lane SET owner = NULL WHERE id = $1", lease.lane)
        await fence(tx, lease)

    await store.write(change)


def test_pending_mail_is_in_order():
    assert Lease(lane="s", worker="w", epoch=1, waiting=(5, 7), taken=(2, 6)).pending == (2, 5, 6, 7)
