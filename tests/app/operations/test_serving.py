"""What a gateway uses of a running system."""

from hermes_agent.app.operations import serving
from hermes_agent.app.operations.serving import note_asker, report_back
from hermes_agent.core.chat import Conversation
from tests.app.place import another, counting, place


async def test_a_lock_is_held_by_one_process_at_a_time(tmp_path):
    async with place(tmp_path, counting) as here, another(here.runtime.home, here.server) as there:
        async with serving.lock(here.runtime, "channel x") as check:
            assert check is not None
            check()
            async with serving.lock(there.runtime, "channel x") as other:
                assert other is None
        async with serving.lock(there.runtime, "channel x") as other:
            assert other is not None


async def test_numbers_of_messages_that_no_database_takes_are_of_none(tmp_path):
    async with place(tmp_path, counting) as here:
        assert [await serving.slot_at(here.runtime, number) for number in (1, 2**63, 2**70)] == [None, None, None]


async def test_a_chat_has_a_topic_and_a_session_or_none(tmp_path):
    chat = Conversation(platform="telegram", chat="7")
    async with place(tmp_path, counting) as here:
        assert (await serving.topic_of(here.runtime, chat), await serving.has_spoken_in(here.runtime, chat)) == (
            "",
            False,
        )
        await serving.facts_of(here.runtime).set(chat.key, serving.TOPIC, "work")
        await here.runtime.hermes.open_session(chat, here.runtime.owner, workspace=str(tmp_path))
        assert (await serving.topic_of(here.runtime, chat), await serving.has_spoken_in(here.runtime, chat)) == (
            "work",
            True,
        )


async def test_who_asked_is_told_once(tmp_path):
    async with place(tmp_path, []) as here:
        await note_asker(here.runtime, here.inbound("/restart"))

        await report_back(here.runtime)
        await report_back(here.runtime)

        (slot,) = await here.runtime.store.outbox.claim(("cli",))
        assert slot.content.text.startswith("I am back: Hermes ")
        assert slot.to == here.inbound("x").conversation


async def test_where_nobody_asked_nothing_is_said(tmp_path):
    async with place(tmp_path, []) as here:
        await report_back(here.runtime)

        assert not await here.runtime.store.outbox.claim(("cli",))
