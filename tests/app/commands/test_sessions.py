"""Which conversation this is, and how far it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.errors import HermesError, UnknownSession
from hermes_agent.core.events import Outcome
from hermes_agent.core.messages import Image, Text
from hermes_agent.providers.demo.script import Call, Say
from tests.app.place import counting, place


async def test_new_begins_another_session_in_the_same_place(tmp_path):
    async with place(tmp_path, counting) as here:
        first = here.record
        await here.say("Hi")
        text = await here.text("/new The second")

        assert here.record.id != first.id
        assert text == f"New session {here.record.id}."
        assert (here.record.title, here.record.workspace) == ("The second", first.workspace)
        current = await here.runtime.store.sessions.current(here.record.conversation)
        assert current.id == here.record.id


async def test_resume_goes_back_by_title_or_id(tmp_path):
    async with place(tmp_path, counting) as here:
        first = here.record
        await here.type("/title First one")
        await here.type("/new")
        assert await here.text("/resume first one") == f"Resumed {first.id} (First one)."
        assert here.record.id == first.id
        await here.type("/new")
        await here.type(f"/resume {first.id}")
        assert here.record.id == first.id
        assert first.id in await here.text("/resume")


async def test_resume_finds_nobody_elses_session(tmp_path):
    async with place(tmp_path, counting) as here:
        stranger = Principal(platform="telegram", user="7", standing=Standing.MEMBER)
        there = Conversation(platform="telegram", chat="7")
        other = await here.runtime.hermes.open_session(there, stranger, workspace="/")

        with pytest.raises(UnknownSession):
            await here.type(f"/resume {other.id}")
        assert other.id not in await here.text("/sessions")


async def test_sessions_lists_the_latest(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.type("/title One")
        await here.type("/new Two")

        assert [line.split("  ")[-1] for line in (await here.text("/sessions")).splitlines()] == ["Two", "One"]
        assert len((await here.text("/sessions 1")).splitlines()) == 1
        assert len((await here.text("/sessions ²")).splitlines()) == 2


async def test_branch_copies_the_conversation_and_leaves_the_original_alone(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.say("One")
        original = here.record
        await here.type("/branch Another way")
        await here.say("Two")

        assert here.record.parent == original.id
        assert await here.transcript() == ["user: One", "assistant: Reply 1.", "user: Two", "assistant: Reply 2."]
        here.record = original
        assert await here.transcript() == ["user: One", "assistant: Reply 1."]


async def test_title_shows_and_sets(tmp_path):
    async with place(tmp_path, counting) as here:
        assert await here.text("/title") == "(untitled)"
        await here.type("/title Grüße")
        assert await here.text("/title") == "Grüße"


@pytest.mark.parametrize(("line", "left"), [("/undo", 2), ("/undo 0", 2), ("/undo 2", 0), ("/undo 99", 0)])
async def test_undo_takes_back_whole_exchanges(tmp_path, line, left):
    async with place(tmp_path, counting) as here:
        await here.say("One")
        await here.say("Two")
        await here.type(line)

        assert len(await here.transcript()) == left
        assert (await here.say("Three")).outcome is Outcome.ANSWERED


async def test_undo_again_goes_further_back_and_ends(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.say("One")
        await here.say("Two")
        await here.type("/undo")
        await here.type("/undo")
        with pytest.raises(HermesError, match="nothing to undo"):
            await here.type("/undo")

        assert await here.transcript() == []


async def test_retry_asks_again_with_the_same_or_other_words(tmp_path):
    async with place(tmp_path, counting) as here:
        with pytest.raises(HermesError, match="nothing to undo"):
            await here.type("/retry")
        await here.say("One")
        done = await here.type("/retry")
        await here.say(done.submit)
        assert await here.transcript() == ["user: One", "assistant: Reply 1."]
        done = await here.type("/retry Other words")
        await here.say(done.submit)
        assert await here.transcript() == ["user: Other words", "assistant: Reply 1."]


async def test_retry_keeps_the_picture(tmp_path):
    picture = Image(data="aGk=", media_type="image/png")
    async with place(tmp_path, counting) as here:
        inbound = here.inbound("See")
        object.__setattr__(inbound, "parts", (*inbound.parts, picture))
        await here.say(inbound)
        done = await here.type("/retry")

        assert [type(part) for part in done.submit.parts] == [Text, Image]


async def test_one_file_is_put_back(tmp_path: Path):
    async with place(tmp_path, [Call("write_file", {"path": "a", "content": "x"}), Say("Done.")]) as here:
        await here.say("Write")

        assert (
            await here.text("/rollback 1 a")
            == "Restored checkpoint 1:\n  a (removed)\nTo undo this, restore checkpoint 2."
        )
        assert await here.text("/rollback diff 1") == "Nothing changed since checkpoint 1."


@pytest.mark.parametrize("line", ["/rollback x", "/rollback diff", "/rollback diff x", "/rollback -1"])
async def test_what_is_no_number_is_told_how_to_say_it(tmp_path: Path, line: str):
    async with place(tmp_path, [Say("Done.")]) as here:
        with pytest.raises(HermesError, match="Say `/rollback`"):
            await here.text(line)
