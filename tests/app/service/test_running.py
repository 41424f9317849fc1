"""A run from its beginning to its end, and what is given up before it begins."""

from hermes_agent.app.decks.deck import Playing
from hermes_agent.app.floor import Floor
from hermes_agent.app.service.running import Service
from hermes_agent.core.events import Outcome
from hermes_agent.core.inbound import Busy
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.house import House


async def died(tx):
    await tx.run("UPDATE lane SET crashes = crashes + 1")


async def test_what_killed_the_program_again_and_again_waits_with_the_reason_until_somebody_writes(tmp_path):
    house = House(tmp_path, ScriptedModel([Say("Never.")]))
    async with house.open():
        await house.store.inbox.accept(house.inbound("Hi", message_id="1"), house.session, "cli")
        for _ in range(3):
            await house.store.write(died)
        floor = Floor(
            store=house.store, build=house.building, deck=Playing(house.clock, house.ids), queue="cli", own_only=False
        )
        floor.look()
        ended = await house.ended()
        await floor.close()

        assert ended.outcome is Outcome.LIMIT
        assert ended.text == (
            "The program died 3 times while it worked on this, so it waits. Write again, or run "
            f"`hermes sessions resume {house.session}`, to have it tried once more."
        )
        assert (await house.store.inbox.find("test", "1")).state == "waiting"
        after = (await house.log())[-1].number
        await house.tell("Again")
        assert (await house.ended(after)).outcome is Outcome.ANSWERED
        assert [each.text for each in house.model.requests[-1].messages][:2] == ["Hi", "Again"]


async def test_who_waits_behind_what_killed_the_program_is_not_blamed_for_it(tmp_path):
    house = House(tmp_path, ScriptedModel([Say("Here.")]))
    async with house.open():
        for text in ("one", "two"):
            await house.store.inbox.accept(house.inbound(text, message_id=text, busy=Busy.ALONE), house.session, "cli")
        for _ in range(3):
            await house.store.write(died)
        floor = Floor(
            store=house.store, build=house.building, deck=Playing(house.clock, house.ids), queue="cli", own_only=False
        )
        floor.look()
        first = await house.ended()
        second = await house.ended((await house.numbers("run_ended"))[0])
        await floor.close()

        assert (first.outcome, second.outcome, second.text) == (Outcome.LIMIT, Outcome.ANSWERED, "Here.")
        mail = house.store.inbox
        assert [(await mail.find("test", each)).state for each in ("one", "two")] == ["waiting", "answered"]


def test_without_more_words_a_service_has_no_limit():
    assert Service().most is None
