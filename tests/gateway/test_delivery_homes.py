"""Where it is told that a message cannot be delivered."""

from dataclasses import replace
from pathlib import Path

from hermes_agent.app.chats.people import People
from hermes_agent.app.chats.settings import ChannelSettings
from hermes_agent.core.chat import Content, Conversation, Letter
from hermes_agent.gateway.delivery import Notices
from tests.gateway.harness import harness

HOMES = People({"fake": ChannelSettings(home="7"), "other": ChannelSettings(home="9")})


async def test_what_cannot_be_delivered_at_home_is_told_in_the_home_of_another_channel(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        store, to = here.store, Conversation(platform="fake", chat="7")
        letter = Letter(key="k", to=to, content=Content(text="Hello."))
        slot = await store.outbox.get(await store.write(lambda tx: store.outbox.put(tx, letter, wake=False)))
        assert slot is not None
        notices = Notices(here.gateway.runtime, HOMES, lambda: None)

        await notices.undelivered(slot, "It is gone.")
        await notices.undelivered(replace(slot, id=99, to=replace(to, chat="8")), "It is gone.")

        (told,) = await store.outbox.claim(["other"])
        assert (told.to.chat, told.content.text) == ("9", "I could not deliver a message to the chat 7: It is gone.")
