"""The owner is told, at the home of a channel, what nobody else can be told any more."""

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.gateway.inbound_events import Removed, Said, Sender
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.platform import Trouble
from tests.gateway.harness import eventually, harness

HOME = "owners: ['7']\nhome: '7'\n"
GROUP = f"{HOME}groups: ['5']\n"


async def test_a_chat_that_is_gone_is_told_to_the_owner_and_the_reply_is_kept(tmp_path: Path):
    async with harness(tmp_path, [Say("The answer is 42.")], GROUP) as here:
        here.platform.chats.order(Trouble.GONE, "send")
        await here.platform.say("Hi", chat="5", group=True, addressed=True)

        (told,) = await here.shown(chat="7")
        assert "could not be delivered" in told.text
        assert "The chat is gone." in told.text
        (slot,) = await here.store.outbox.failed()
        assert slot.content.text == "The answer is 42."


async def test_an_agent_that_is_removed_from_a_group_tells_its_owner_once(tmp_path: Path):
    async with harness(tmp_path, [], GROUP) as here:
        gone = Removed(where=here.platform.where("5", group=True), reason="The bot was kicked.")
        await here.platform.tell(gone)
        await here.platform.tell(gone)
        await here.shown(chat="7")
        await here.rest()

        (told,) = here.platform.chats.of("7")
        assert "The bot was kicked." in told.text


async def test_who_puts_the_agent_out_of_a_chat_where_it_never_answered_reaches_nobody_by_it(tmp_path: Path):
    async with harness(tmp_path, [], GROUP) as here:
        for chat, group in (("6", True), ("66", True), ("8", False)):
            await here.platform.tell(Removed(where=here.platform.where(chat, group=group), reason="Kicked."))
        await here.platform.tell(Removed(where=here.platform.where("5", group=True), reason="Blocked."))
        await here.shown(chat="7")
        await here.rest()

        (told,) = here.platform.chats.of("7")
        assert "Blocked." in told.text


async def test_a_person_who_talked_with_the_agent_and_blocks_it_is_told_of(tmp_path: Path):
    async with harness(tmp_path, [Say("Hello.")], f"{HOME}members: ['8']\n") as here:
        await here.ask("Hi", user="8", chat="8")
        await here.platform.tell(Removed(where=here.platform.where("8"), reason="Blocked."))
        (told,) = await here.shown(chat="7")

        assert "Blocked." in told.text


@pytest.mark.parametrize("kind", ["dm", "group"])
async def test_it_is_told_also_where_nobody_says_any_more_who_that_person_was(tmp_path: Path, kind: str):
    async with harness(tmp_path, [Say("Hello.")], f"{HOME}members: ['8']\n") as here:
        where = here.platform.where("room")
        said = Said(
            source_id="1", where=replace(where, participant="8"), sender=Sender(user="8", name="Ann"), text="Hi", at=1.0
        )
        await here.platform.tell(said)
        await here.shown(chat="room")
        await here.platform.tell(Removed(where=replace(where, chat_kind=kind), reason="Kicked."))
        (told,) = await here.shown(chat="7")

        assert "Kicked." in told.text


async def test_what_cannot_be_told_at_home_is_told_nowhere_else(tmp_path: Path):
    async with harness(tmp_path, [Say("Hello.")], HOME) as here:
        for _ in range(3):
            here.platform.chats.order(Trouble.GONE, "send")
        await here.platform.say("Hi", chat="7")
        await here.platform.say("Hi")

        async def failed() -> bool:
            return len(await here.store.outbox.failed()) == 3

        await eventually(failed)
        await here.rest()
        assert not here.platform.chats.messages
