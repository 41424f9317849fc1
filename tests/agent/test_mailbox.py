"""The session's side of the inbox."""

import asyncio
from dataclasses import replace

import pytest

from hermes_agent.agent.mailbox import Mailbox
from hermes_agent.core.events import MessageTaken, Outcome
from hermes_agent.core.inbound import Busy
from hermes_agent.providers.demo.script import Answer, Call, Pace, Say
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.house import House, tool


async def test_mail_that_was_answered_is_answered(tmp_path):
    async with House(tmp_path, ScriptedModel([Say("Hello.")])).open() as house:
        await house.say("Hi", message_id="1")

        assert (await house.store.inbox.find("test", "1")).state == "answered"


async def test_the_model_is_that_of_the_message_which_the_run_answers(tmp_path):
    async with House(tmp_path, ScriptedModel([])).open() as house:
        inbox, queue = house.store.inbox, "other"
        rows = [
            await inbox.accept(replace(house.inbound(name), **more), house.session, queue)
            for name, more in (("x", {"answers": "q"}), ("one", {"model": "v/one"}), ("two", {"model": "v/two"}))
        ]

        async def model(*taken: int) -> str:
            lease = await house.store.lanes.claim([queue])
            await house.store.write(lambda tx: inbox.take(tx, lease, taken))
            found = await Mailbox(house.store, lease, house.clock).model()
            await house.store.lanes.release(lease)
            return found

        assert [await model(), await model(rows[2]), await model(*rows)] == ["v/one", "v/two", "v/one"]


@pytest.mark.parametrize(
    "mail",
    [
        ({"model": "v/one", "source_id": "1"}, {"withdraws": "1"}, {"model": "v/two"}),
        ({"withdraws": "0"}, {"model": "v/two"}),
        ({"model": "v/one", "busy": Busy.ALONE}, {"model": "v/two", "busy": Busy.INTERRUPT}),
    ],
    ids=["it was taken back", "another was taken back", "it waits behind what interrupts"],
)
async def test_the_model_is_not_that_of_a_message_which_the_run_does_not_answer(tmp_path, mail):
    async with House(tmp_path, ScriptedModel([])).open() as house:
        for more in mail:
            await house.store.inbox.accept(replace(house.inbound("Hi"), **more), house.session, "other")
        lease = await house.store.lanes.claim(["other"])

        assert await Mailbox(house.store, lease, house.clock).model() == "v/two"
        await house.store.lanes.release(lease)


async def test_mail_of_a_stopped_run_is_refused_with_the_reason(tmp_path):
    async with House(tmp_path, ScriptedModel([Hang()])).open() as house:
        await house.tell("Hi", message_id="1")
        await house.until(MessageTaken)
        await house.hermes.stop(house.session)

        mail = await house.store.inbox.find("test", "1")
        assert (mail.state, mail.reason) == ("refused", "Stopped.")


async def test_mail_that_comes_while_the_reply_is_written_is_answered_by_a_reply_of_its_own(tmp_path):
    model = ScriptedModel(
        lambda heard: Answer(pieces=(Say(f"Reply {len(model.requests)}."),), pace=Pace(between=0.02, characters=2))
    )
    async with House(tmp_path, model).open() as house:
        await house.tell("One", message_id="1")
        while not model.requests:
            await asyncio.sleep(0.001)
        await house.tell("Two", message_id="2")
        first = await house.ended()
        second = await house.ended((await house.numbers("run_ended"))[0])

        assert (first.text, second.text) == ("Reply 1.", "Reply 2.")
        assert await house.transcript() == ["user: One", "assistant: Reply 1.", "user: Two", "assistant: Reply 2."]


async def test_a_queued_message_after_a_stop_begins_a_run_of_its_own(tmp_path):
    """And the stop returns when its run has ended, not when the next one has."""
    model = ScriptedModel(lambda heard: Call("wait") if len(model.requests) == 1 else Hang())
    async with House(tmp_path, model, (tool("wait", seconds=60),)).open() as house:
        await house.tell("One")
        while not house.tools[0].calls:
            await asyncio.sleep(0.001)
        await house.tell("Two", busy=Busy.QUEUE)
        async with asyncio.timeout(2):
            await house.hermes.stop(house.session)
        while len(model.requests) < 2:
            await asyncio.sleep(0.001)

        first = (await house.ended()).outcome
        assert first is Outcome.STOPPED
        assert (await house.kinds()).count("run_started") == 2


async def test_every_word_of_a_burst_is_answered_once(tmp_path):
    model = ScriptedModel(lambda heard: Say(f"Reply {len(model.requests)}."))
    async with House(tmp_path, model).open() as house:
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(house.tell(f"m{number}", message_id=str(number)))
        while (await house.store.inbox.find("test", "19")).state != "answered" or house.hermes.runs(house.session):
            await asyncio.sleep(0.005)

        said = sorted(line for line in await house.transcript() if line.startswith("user"))
        assert said == sorted(f"user: m{number}" for number in range(20))


async def test_a_stop_that_comes_before_the_mail_is_read_is_about_that_mail(tmp_path):
    model = ScriptedModel([Say("Never.")])
    async with House(tmp_path, model).open() as house:
        house.doors.clear()
        await house.tell("One", message_id="1")
        while not house.hermes.runs(house.session):
            await asyncio.sleep(0)
        stopping = asyncio.create_task(house.hermes.stop(house.session))
        await asyncio.sleep(0.05)
        house.doors.set()
        await stopping

        assert await house.transcript() == ["user: One"]
        assert (await house.store.inbox.find("test", "1")).state == "refused"
        assert not house.hermes.runs(house.session)


async def test_a_message_that_interrupts_before_the_first_was_read_is_read_with_it(tmp_path):
    async with House(tmp_path, ScriptedModel([Say("Both.")])).open() as house:
        house.doors.clear()
        await house.tell("One")
        while not house.hermes.runs(house.session):
            await asyncio.sleep(0)
        await house.tell("Two", busy=Busy.INTERRUPT, message_id="2")
        house.doors.set()
        while (await house.store.inbox.find("test", "2")).state != "answered":
            await asyncio.sleep(0.005)

        assert [line for line in await house.transcript() if line.startswith("user")] == ["user: One", "user: Two"]
