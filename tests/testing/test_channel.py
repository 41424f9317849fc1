"""The fake channel goes wrong when it is told to. (What it does otherwise is the contract of channels.)"""

import asyncio

import pytest

from hermes_agent.core.chat import Conversation
from hermes_agent.gateway.channel import Heard, MessageGone, NotNow, Part, TokenRefused
from hermes_agent.testing.channel import FakeChannel, FakePlatform
from hermes_agent.testing.platform import Trouble


async def hear(_: Heard) -> str:
    return ""


async def test_a_connection_breaks_when_told() -> None:
    platform = FakePlatform()
    platform.chats.order(Trouble.CUT, "listen")

    with pytest.raises(NotNow):
        await FakeChannel(platform).listen(hear)


async def test_what_is_not_there_cannot_be_deleted() -> None:
    channel = FakeChannel(FakePlatform())

    with pytest.raises(MessageGone):
        await channel.delete(Conversation(platform="fake", chat="1"), "404")


async def test_what_another_tells_is_not_found_as_ones_own() -> None:
    channel, to = FakeChannel(FakePlatform()), Conversation(platform="fake", chat="1")
    receipt = await channel.send(to, Part(text="a"), "k")

    assert await channel.find(to, Part(text="a"), "k", 0.0) == receipt
    assert await channel.find(to, Part(text="a"), "another", 0.0) is None


async def test_an_ailment_is_told() -> None:
    platform = FakePlatform()
    platform.ailment = "The token is wrong."

    with pytest.raises(TokenRefused, match="The token is wrong"):
        await FakeChannel(platform).check()
    assert platform.received() == 0
    await asyncio.sleep(0)
