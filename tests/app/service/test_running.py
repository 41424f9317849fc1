"""A run from its beginning to its end, and what is given up before it begins."""

from hermes_agent.app.decks.deck import Playing
from hermes_agent.app.floor import Floor
from hermes_agent.app.service.running import Service
from hermes_agent.core.events import Outcome
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.house import House


async def died(tx):
    await tx.run("UPDATE lane SET crashes = crashes + 1, blamed = blamed + 1")


async def test_what_killed_the_program_again_and_again_is_refused_with_the_reason(tmp_path):
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

        assert (ended.outcome, ended.text) == (
            Outcome.FAILED,
            "Given up: the program died 3 times while it worked on this.",
        )
        assert (await house.store.inbox.find("test", "1")).state == "refused"


def test_without_more_words_a_service_has_no_limit():
    assert Service().most is None
