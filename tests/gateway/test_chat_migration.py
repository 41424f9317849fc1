"""Chats that got another id."""

import pytest

from hermes_agent.core.errors import StoreError
from hermes_agent.gateway.chat_migration import ChatMigration
from hermes_agent.testing.channel import FakeKept

PLACE = "channel:telegram:1"


async def test_a_group_may_move_twice_and_what_is_kept_may_be_anything():
    kept = FakeKept()
    moves = ChatMigration(kept, PLACE)
    await moves.moved("-1", "-2")
    await moves.moved("-2", "-3")
    await moves.moved("-1", "-3")

    fresh = ChatMigration(kept, PLACE)
    assert (await fresh.now("-1"), await fresh.first("-3"), await fresh.now("-7")) == ("-3", "-1", "-7")
    await kept.set(PLACE, "moved", "[]")
    assert await ChatMigration(kept, PLACE).now("-1") == "-1"


class Full(FakeKept):
    """Keeps nothing at first."""

    room = False

    async def set(self, *given) -> None:
        if not self.room:
            raise StoreError("The disk is full.")
        await super().set(*given)


async def test_a_move_that_could_not_be_kept_is_kept_when_it_is_told_again():
    kept = Full()
    moves = ChatMigration(kept, PLACE)
    with pytest.raises(StoreError):
        await moves.moved("-1", "-2")
    kept.room = True

    await moves.moved("-1", "-2")

    assert await ChatMigration(kept, PLACE).now("-1") == "-2"
