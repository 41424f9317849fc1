"""A run from its beginning to its end, and what is given up before it begins."""

from hermes_agent.core.chat import Busy
from hermes_agent.core.events import Outcome
from hermes_agent.providers.demo.script import Say
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.one_run import Service
from hermes_agent.runs.scheduler import Scheduler
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness


async def died(tx):
    await tx.run("UPDATE lane SET crashes = crashes + 1")


async def test_what_killed_the_program_again_and_again_waits_with_the_reason_until_somebody_writes(tmp_path):
    harness = Harness(tmp_path, ScriptedModel([Say("Never.")]))
    async with harness.open():
        await harness.store.inbox.accept(harness.inbound("Hi", message_id="1"), harness.session, "cli")
        for _ in range(3):
            await harness.store.write(died)
        scheduler = Scheduler(
            store=harness.store,
            build=harness.building,
            seam=Seam(harness.clock, harness.ids),
            queue="cli",
            own_only=False,
        )
        scheduler.wake()
        ended = await harness.ended()
        await scheduler.close()

        assert ended.outcome is Outcome.LIMIT
        assert ended.text == (
            "The program crashed 3 times during this run, so Hermes stopped retrying. Write again, or run "
            f"`hermes sessions resume {harness.session}`."
        )
        assert (await harness.store.inbox.find("test", "1")).state == "waiting"
        after = (await harness.log())[-1].number
        await harness.tell("Again")
        assert (await harness.ended(after)).outcome is Outcome.ANSWERED
        assert [each.text for each in harness.model.requests[-1].messages][:2] == ["Hi", "Again"]


async def test_who_waits_behind_what_killed_the_program_is_not_blamed_for_it(tmp_path):
    harness = Harness(tmp_path, ScriptedModel([Say("Here.")]))
    async with harness.open():
        for text in ("one", "two"):
            await harness.store.inbox.accept(
                harness.inbound(text, message_id=text, busy=Busy.ALONE), harness.session, "cli"
            )
        for _ in range(3):
            await harness.store.write(died)
        scheduler = Scheduler(
            store=harness.store,
            build=harness.building,
            seam=Seam(harness.clock, harness.ids),
            queue="cli",
            own_only=False,
        )
        scheduler.wake()
        first = await harness.ended()
        second = await harness.ended((await harness.numbers("run_ended"))[0])
        await scheduler.close()

        assert (first.outcome, second.outcome, second.text) == (Outcome.LIMIT, Outcome.ANSWERED, "Here.")
        mail = harness.store.inbox
        assert [(await mail.find("test", each)).state for each in ("one", "two")] == ["waiting", "answered"]


def test_without_more_words_a_service_has_no_limit():
    assert Service().most is None
