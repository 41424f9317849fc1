"""What a process holds beside its runs is held by one, and not swept."""

from pathlib import Path

from hermes_agent.store.inbox import Ending
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness
from tests.runs.test_posting import served


async def test_what_is_kept_is_kept_by_one(tmp_path: Path):
    async with served(Harness(tmp_path, ScriptedModel([]))) as harness:
        locks = harness.hermes.scheduler.locks
        lease = await locks.acquire("telegram token")
        assert lease is not None

        assert await locks.acquire("telegram token") is None
        harness.store.workers.alive(lease)

        await locks.release(lease)
        await locks.release(lease)
        assert await locks.acquire("telegram token") is not None


async def test_a_kept_lane_is_not_swept(tmp_path: Path):
    async with served(Harness(tmp_path, ScriptedModel([]))) as harness:
        assert await harness.hermes.scheduler.locks.acquire("telegram token") is not None

        await harness.store.workers.sweep(harness.hermes.scheduler.locks.names)
        await harness.store.workers.sweep(harness.hermes.scheduler.locks.names)

        assert await harness.hermes.scheduler.locks.acquire("telegram token") is None


async def test_mail_of_another_kind_is_claimed_and_ended(tmp_path: Path):
    async with served(Harness(tmp_path, ScriptedModel([]))) as harness:
        locks, store = harness.hermes.scheduler.locks, harness.store
        await store.inbox.accept(harness.inbound("/new", message_id="1"), "command telegram:dm:1", "commands")
        assert await locks.claim("commands", "command another") is None

        lease = await locks.claim("commands")
        assert lease is not None
        assert lease.lane in locks.names
        assert await store.write(lambda tx: store.inbox.finish(tx, lease, lease.pending, Ending.ANSWERED))
        locks.on_released(lease)

        assert not locks.names
        assert await locks.claim("commands") is None


async def test_who_lost_a_lane_lets_go_of_nothing_that_is_held_since(tmp_path: Path):
    async with served(Harness(tmp_path, ScriptedModel([]))) as harness:
        locks, store = harness.hermes.scheduler.locks, harness.store
        lost = await locks.acquire("telegram token")
        await store.workers._bury(store.workers.id, None)  # Others gave this process up.
        held = await locks.acquire("telegram token")
        assert lost is not None
        assert held is not None

        await locks.release(lost)
        locks.on_released(lost)

        assert list(locks.names) == [held.lane]
