"""What a process holds beside its runs is held by one, and not swept."""

from pathlib import Path

from hermes_agent.store.inbox import Ending
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.house import House
from tests.app.service.test_posting import served


async def test_what_is_kept_is_kept_by_one(tmp_path: Path):
    async with served(House(tmp_path, ScriptedModel([]))) as house:
        keeping = house.hermes.floor.keeping
        lease = await keeping.keep("telegram token")
        assert lease is not None

        assert await keeping.keep("telegram token") is None
        house.store.workers.alive(lease)

        await keeping.let_go(lease)
        await keeping.let_go(lease)
        assert await keeping.keep("telegram token") is not None


async def test_a_kept_lane_is_not_swept(tmp_path: Path):
    async with served(House(tmp_path, ScriptedModel([]))) as house:
        assert await house.hermes.floor.keeping.keep("telegram token") is not None

        await house.store.workers.sweep(house.hermes.floor.keeping.names)
        await house.store.workers.sweep(house.hermes.floor.keeping.names)

        assert await house.hermes.floor.keeping.keep("telegram token") is None


async def test_mail_of_another_kind_is_claimed_and_ended(tmp_path: Path):
    async with served(House(tmp_path, ScriptedModel([]))) as house:
        keeping, store = house.hermes.floor.keeping, house.store
        await store.inbox.accept(house.inbound("/new", message_id="1"), "command telegram:dm:1", "commands")
        assert await keeping.take("commands", "command another") is None

        lease = await keeping.take("commands")
        assert lease is not None
        assert lease.lane in keeping.names
        assert await store.write(lambda tx: store.inbox.finish(tx, lease, lease.pending, Ending.ANSWERED))
        keeping.dropped(lease)

        assert not keeping.names
        assert await keeping.take("commands") is None


async def test_who_lost_a_lane_lets_go_of_nothing_that_is_held_since(tmp_path: Path):
    async with served(House(tmp_path, ScriptedModel([]))) as house:
        keeping, store = house.hermes.floor.keeping, house.store
        lost = await keeping.keep("telegram token")
        await store.workers._bury(store.workers.id, None)  # Others gave this process up.
        held = await keeping.keep("telegram token")
        assert lost is not None
        assert held is not None

        await keeping.let_go(lost)
        keeping.dropped(lost)

        assert list(keeping.names) == [held.lane]
