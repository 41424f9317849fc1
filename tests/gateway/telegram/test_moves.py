"""A group that becomes a supergroup keeps its conversation, also in a new process; no message is taken for another."""

import asyncio
from contextlib import suppress

import pytest

from hermes_agent.core.chat import Conversation
from hermes_agent.gateway.channel import Heard, MessageGone, Part, Said
from hermes_agent.gateway.channels.telegram import CHANNEL
from tests.contracts.channels import needs
from tests.doubles.telegram import TOKEN, telegram

OLD, NEW = "-9", "-1009"
GROUP = Conversation(platform="telegram", chat_kind="group", chat=OLD)


@pytest.fixture
async def double():
    async with telegram() as made:
        yield made


@pytest.fixture
async def given(double, tmp_path):
    made = needs(tmp_path, {"api_url": double.url}, TOKEN)
    yield made
    await made.http.close()


async def heard(channel, count: int) -> list[Heard]:
    found: list[Heard] = []
    enough = asyncio.Event()

    async def hear(one: Heard) -> str:
        found.append(one)
        if len(found) == count:
            enough.set()
        return ""

    task = asyncio.create_task(channel.listen(hear))
    async with asyncio.timeout(10):
        await enough.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return found


async def test_a_conversation_goes_on_under_the_first_id(double, given):
    await double.say("before", chat=OLD, group=True)
    double.upgrade(OLD, NEW)
    await double.say("after", chat=NEW, group=True)
    channel = CHANNEL.make(given)
    before, after = await heard(channel, 2)

    assert isinstance(before, Said)
    assert isinstance(after, Said)
    assert before.where == after.where == GROUP
    assert (before.source_id.split(":")[0], after.source_id.split(":")[0]) == (OLD, NEW)
    again = CHANNEL.make(given)
    receipt = await again.send(GROUP, Part(text="Yes", answers=after.source_id), "k")
    await again.edit(GROUP, receipt, Part(text="Yes!"))
    await again.send(GROUP, Part(text="And", answers=before.source_id), "k2")
    assert [(shown.text, bool(shown.answers)) for shown in double.chats.of(NEW)] == [("Yes!", True), ("And", False)]
    await again.delete(GROUP, receipt)
    await again.typing(GROUP)
    assert (len(double.chats.of(NEW)), double.chats.typing) == (1, [NEW])


async def test_a_move_that_nobody_told_is_found_when_something_is_sent(double, given):
    channel = CHANNEL.make(given)
    old = await channel.send(GROUP, Part(text="before"), "k")
    double.moved[OLD] = int(NEW)

    receipt = await channel.send(GROUP, Part(text="after"), "k2")

    assert receipt.startswith(f"{NEW}:")
    assert [shown.text for shown in double.chats.of(NEW)] == ["after"]
    with pytest.raises(MessageGone):
        await channel.edit(GROUP, old, Part(text="changed"))
