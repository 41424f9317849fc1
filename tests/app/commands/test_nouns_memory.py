"""/memory, and the notes of a whole system: noted in one conversation, known in the next."""

from dataclasses import replace

import pytest

from hermes_agent.app.commands.command import Desk, perform
from hermes_agent.app.household import local_owner
from hermes_agent.app.opening import Options
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.store.facts.facts import NewFact, Source
from hermes_agent.store.versions import Author
from tests.app.place import Place, place

NOTE = Call("memory", {"target": "memory", "action": "add", "content": "The build is make."})
GUEST = Principal(platform="telegram", user="7", standing=Standing.GUEST)


def only_me(principal: str) -> Standing:
    return Standing.OWNER if principal == local_owner().key else Standing.GUEST


def noting(heard: Heard) -> Say | Call:
    if heard.last.role == "tool":
        return Say("Noted.")
    return NOTE if heard.last.text.startswith("Note") else Say(heard.system)


async def answer(here: Place) -> str:
    return (await here.transcript())[-1]


async def test_what_was_noted_is_in_the_prompt_of_the_next_conversation_and_not_of_this_one(tmp_path):
    async with place(tmp_path, noting) as here:
        await here.say("Note that")
        await here.say("What do you know?")
        assert "The build is make." not in await answer(here)
        await here.type("/new")
        await here.say("What do you know?")

        assert "# What you noted in earlier conversations" in await answer(here)
        assert "The build is make." in await answer(here)


async def test_memory_shows_the_changes_and_takes_one_back(tmp_path):
    async with place(tmp_path, noting) as here:
        await here.say("Note that")

        assert "1. The build is make." in await here.text("/memory")
        head, *diff = (await here.text("/memory log")).splitlines()
        assert head.split("  ")[2:4] == ["MEMORY.md", "add"]
        assert diff == ["    +The build is make."]
        assert await here.text("/memory undo 1") == (
            "Version 1 of MEMORY.md is undone (version 2). New sessions use the restored text."
        )
        assert "build" not in await here.text("/memory")


async def test_the_ledger_knows_the_messages_that_led_to_a_change(tmp_path):
    async with place(tmp_path, noting) as here:
        await here.say("Hello")
        await here.say("Note that")
        (version,) = await here.runtime.store.versions.list()
        log = {entry.number: entry.event.kind for entry in await here.log()}

        assert version.change.session == here.record.id
        assert log[version.change.first] == "message_taken"
        assert log[version.change.last] == "tool_started"
        assert version.change.principal == local_owner().key


async def test_a_word_that_is_none_is_told(tmp_path):
    async with place(tmp_path, noting) as here:
        for line in ("/memory forget", "/memory undo x", "/memory undo 7"):
            with pytest.raises(HermesError):
                await here.text(line)


async def test_a_guest_sees_their_own_and_nothing_of_the_owners(tmp_path):
    async with place(tmp_path, noting, Options(standing=only_me)) as here:
        await here.say("Note that")
        chat = Conversation(platform="telegram", chat="7")
        record = await here.runtime.hermes.open_session(chat, GUEST, workspace=str(tmp_path))
        there = replace(here.inbound("/memory"), principal=GUEST, conversation=chat)
        done = await perform(Desk(runtime=here.runtime, record=record, inbound=there))
        undo = replace(here.inbound("/memory undo 1"), principal=GUEST, conversation=chat)

        assert done is not None
        assert "build" not in done.text
        with pytest.raises(HermesError, match="no version 1"):
            await perform(Desk(runtime=here.runtime, record=record, inbound=undo))


async def test_in_a_group_nobodys_notes_are_shown(tmp_path):
    async with place(tmp_path, noting) as here:
        await here.say("Note that")
        group = Conversation(platform="telegram", chat_kind="group", chat="1")
        there = replace(here.inbound("/memory"), conversation=group)
        with pytest.raises(HermesError, match="Other people can read this chat"):
            await perform(Desk(runtime=here.runtime, record=here.record, inbound=there))


async def keep(here: Place, space: str, text: str) -> None:
    new = NewFact(text=text, names=(), vector=b"", trust=0.5)
    await here.runtime.store.known_facts.add(space, new, Source(author=Author.FOREGROUND), 1.0)


async def test_facts_are_shown_retracted_and_put_back_by_whose_they_are(tmp_path):
    async with place(tmp_path, noting) as here:
        assert await here.text("/memory facts") == "No facts are known."
        await keep(here, "hermes", "Tea is at four.")
        await keep(here, "hermes-of-another", "The code word is heron.")

        assert (await here.text("/memory facts")).endswith("trust 0.50  hermes  foreground\n    Tea is at four.")
        assert await here.text("/memory facts retract 1") == "Fact 1 is retracted: Tea is at four."
        assert await here.text("/memory facts undo 3") == "Change 3 of fact 1 (retracted) is undone."

        lines = (await here.text("/memory facts log")).splitlines()
        assert [line.split("  ")[3] for line in lines[::2]] == ["undo of 3", "retracted", "added"]
        assert set(lines[1::2]) == {"    Tea is at four."}


@pytest.mark.parametrize("words", ["retract 2", "undo 2", "retract", "undo x", "whatever"])
async def test_nobody_takes_back_what_is_another_s_or_is_no_number(tmp_path, words: str):
    async with place(tmp_path, noting) as here:
        await keep(here, "hermes", "Tea is at four.")
        await keep(here, "hermes-of-another", "The code word is heron.")

        with pytest.raises(HermesError, match=r"There is no|Say `/memory facts show`"):
            await here.text(f"/memory facts {words}")
