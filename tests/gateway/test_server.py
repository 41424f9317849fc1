"""The gateway as people meet it: what they say is answered once, and one broken channel harms no other."""

from pathlib import Path

import pytest

from hermes_agent.gateway.channel import Abilities, TokenRefused
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.store.database import open_store
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.doubles.platform import Trouble
from hermes_agent.testing.faults import Hang
from tests.gateway.house import eventually, house


async def test_what_a_person_says_is_answered(tmp_path: Path):
    async with house(tmp_path, [Say("Hello, Ann.")]) as here:
        assert await here.ask("Hi") == "Hello, Ann."


async def test_a_message_that_is_told_twice_is_answered_once(tmp_path: Path):
    async with house(tmp_path, [Say("Hello."), Say("Again?")]) as here:
        await here.ask("Hi")
        await here.platform.again()
        await here.rest()

        assert [shown.text for shown in here.platform.chats.of("1")] == ["Hello."]


async def test_the_order_of_a_chat_is_kept(tmp_path: Path):
    async with house(tmp_path, [Say("One."), Say("Two."), Say("Three.")], "owners: ['7']\nbusy: queue\n") as here:
        for number in range(3):
            await here.ask(f"message {number}")

        assert [shown.text for shown in here.platform.chats.of("1")] == ["One.", "Two.", "Three."]


@pytest.mark.parametrize("trouble", [Trouble.BUSY, Trouble.BROKEN])
async def test_a_platform_that_refuses_is_asked_again(tmp_path: Path, trouble: Trouble):
    async with house(tmp_path, [Say("Hello.")]) as here:
        here.platform.chats.order(trouble, "send")

        assert await here.ask("Hi") == "Hello."
        assert (await here.store.outbox.tally()).states == {"sent": 1}


async def test_what_may_have_been_sent_is_sent_again_with_a_mark_and_counted(tmp_path: Path):
    async with house(tmp_path, [Say("Hello.")]) as here:
        here.platform.chats.order(Trouble.DEAF, "send")

        await here.platform.say("Hi")
        first, second = await here.shown(2)

        assert first.text == "Hello."
        assert second.text.startswith("(This may be a repeat")
        assert second.text.endswith("Hello.")
        assert (await here.store.outbox.tally()).repeated == 1


@pytest.mark.parametrize("ability", ["keyed", "read_back"])
async def test_where_it_can_be_known_nothing_is_sent_twice(tmp_path: Path, ability: str):
    platform = FakePlatform(Abilities(longest_message=300, edit=True, **{ability: True}))
    async with house(tmp_path, [Say("Hello.")], platform=platform) as here:
        platform.chats.order(Trouble.DEAF, "send")

        await here.platform.say("Hi")
        await here.shown()
        await eventually(lambda: here.gateway.delivery.delivered == 1)

        assert [shown.text for shown in platform.chats.of("1")] == ["Hello."]
        assert (await here.store.outbox.tally()).repeated == 0


async def test_a_chat_that_is_gone_is_told_in_the_outbox(tmp_path: Path):
    async with house(tmp_path, [Say("Hello.")]) as here:
        here.platform.chats.order(Trouble.GONE, "send")

        await here.platform.say("Hi")

        async def failed() -> bool:
            return [slot.error for slot in await here.store.outbox.failed()] == ["The chat is gone."]

        await eventually(failed)


async def test_a_connection_that_breaks_is_made_again(tmp_path: Path):
    async with house(tmp_path, [Say("Hello."), Say("Again.")]) as here:
        here.platform.chats.order(Trouble.CUT, "listen")

        assert await here.ask("Hi") == "Hello."
        assert await here.ask("Are you there?") == "Again."

        assert here.platform.chats.calls["listen"] > 3


async def test_a_channel_whose_token_is_wrong_stops_and_says_so(tmp_path: Path):
    platform = FakePlatform()

    async def refused(_: object) -> None:
        raise TokenRefused("The token is wrong.")

    kind = platform.kind()
    channel = kind.make(None)
    channel.listen = refused
    platform.made = lambda _: channel
    async with house(tmp_path, [], platform=platform) as here:
        line = here.gateway.known["fake"]
        await eventually(lambda: line.state == "stopped")

        assert line.ailment == "The token is wrong."


async def test_two_gateways_do_not_listen_with_one_token(tmp_path: Path):
    async with house(tmp_path, [Say("Hello.")]) as here:
        await eventually(lambda: here.gateway.known["fake"].state == "listening")
        other = await open_store(str(here.gateway.runtime.home.database))
        name = next(iter(here.gateway.runtime.hermes.floor.keeping.names))

        assert await other.lanes.hold(name, "kept") is None
        await other.close()


async def test_a_draft_is_shown_and_becomes_the_reply(tmp_path: Path):
    async with house(tmp_path, [[Say("Let me see."), Call("todo", {"items": []})], Hang()]) as here:
        await here.platform.say("Look")
        (shown,) = await here.shown()
        assert shown.text.startswith("Let me see.")

        await here.platform.say("/stop")

        await here.shown(2)
        await here.rest()
        assert [shown.text for shown in here.platform.chats.of("1")] == ["Stopped.", "Stopped."]


async def test_a_reply_that_is_too_long_for_one_message_comes_in_several(tmp_path: Path):
    text = "\n\n".join(f"Paragraph {number} of a long reply." for number in range(12))
    async with house(tmp_path, [Say(text)]) as here:
        await here.platform.say("Tell me")
        shown = await here.shown(3)

        assert "\n\n".join(each.text for each in shown) == text
        assert all(len(each.text) <= 200 for each in shown)
