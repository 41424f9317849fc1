"""Health of what a home keeps."""

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.health import WEEK, check_database
from hermes_agent.core.chat import Content, Conversation, Letter, SlotState
from tests.app.place import counting, place


async def test_messages_of_the_last_week_that_were_not_delivered_are_told(tmp_path):
    async with place(tmp_path, counting) as here:
        outbox, now = here.runtime.store.outbox, here.runtime.clock.now()
        for name, at in (("old", now - 2 * WEEK), ("new", now)):
            to = Conversation(platform="telegram", chat=name)
            letter = Letter(key=name, to=to, content=Content(text="Hello"))
            await here.runtime.store.write(lambda tx, letter=letter, at=at: outbox.put(tx, letter, at=at))
        for slot in await outbox.claim(["telegram"]):
            await outbox.complete(slot, SlotState.FAILED, (), error="It is gone.")

        found = await check_database(Access(system=here.runtime, who=here.runtime.owner))

    assert (found.database.damage, found.damaged) == ("", [])
    assert [slot.to.chat for slot in found.undelivered] == ["new"]
