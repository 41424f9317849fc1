"""The session's side of the inbox."""

import asyncio
from dataclasses import replace

import pytest

from hermes_agent.agent.mailbox import Mailbox, Withdrawals
from hermes_agent.core.chat import Busy
from hermes_agent.core.events import MessageTaken, Outcome
from hermes_agent.core.messages import Text
from hermes_agent.providers.demo.script import Answer, Call, Pace, Say
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, tool
from tests.agent.test_inbox import letter


async def test_mail_that_was_answered_is_answered(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Say("Hello.")])).open() as harness:
        await harness.say("Hi", message_id="1")

        assert (await harness.store.inbox.find("test", "1")).state == "answered"


async def test_the_model_is_that_of_the_message_which_the_run_answers(tmp_path):
    async with Harness(tmp_path, ScriptedModel([])).open() as harness:
        inbox, queue = harness.store.inbox, "other"
        rows = [
            await inbox.accept(replace(harness.inbound(name), **more), harness.session, queue)
            for name, more in (("x", {"answers": "q"}), ("one", {"model": "v/one"}), ("two", {"model": "v/two"}))
        ]

        async def model(*taken: int) -> str:
            lease = await harness.store.lanes.claim([queue])
            await harness.store.write(lambda tx: inbox.take(tx, lease, taken))
            found = await Mailbox(harness.store, lease, harness.clock).model()
            await harness.store.lanes.release(lease)
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
    async with Harness(tmp_path, ScriptedModel([])).open() as harness:
        for more in mail:
            await harness.store.inbox.accept(replace(harness.inbound("Hi"), **more), harness.session, "other")
        lease = await harness.store.lanes.claim(["other"])

        assert await Mailbox(harness.store, lease, harness.clock).model() == "v/two"
        await harness.store.lanes.release(lease)


async def test_mail_of_a_stopped_run_is_refused_with_the_reason(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Hang()])).open() as harness:
        await harness.tell("Hi", message_id="1")
        await harness.until(MessageTaken)
        await harness.hermes.stop(harness.session)

        mail = await harness.store.inbox.find("test", "1")
        assert (mail.state, mail.reason) == ("refused", "Stopped.")


async def test_mail_that_comes_while_the_reply_is_written_is_answered_by_a_reply_of_its_own(tmp_path):
    model = ScriptedModel(
        lambda heard: Answer(pieces=(Say(f"Reply {len(model.requests)}."),), pace=Pace(between=0.02, characters=2))
    )
    async with Harness(tmp_path, model).open() as harness:
        await harness.tell("One", message_id="1")
        while not model.requests:
            await asyncio.sleep(0.001)
        await harness.tell("Two", message_id="2")
        first = await harness.ended()
        second = await harness.ended((await harness.numbers("run_ended"))[0])

        assert (first.text, second.text) == ("Reply 1.", "Reply 2.")
        assert await harness.transcript() == ["user: One", "assistant: Reply 1.", "user: Two", "assistant: Reply 2."]


async def test_a_queued_message_after_a_stop_begins_a_run_of_its_own(tmp_path):
    """And the stop returns when its run has ended, not when the next one has."""
    model = ScriptedModel(lambda heard: Call("wait") if len(model.requests) == 1 else Hang())
    async with Harness(tmp_path, model, (tool("wait", seconds=60),)).open() as harness:
        await harness.tell("One")
        while not harness.tools[0].calls:
            await asyncio.sleep(0.001)
        await harness.tell("Two", busy=Busy.QUEUE)
        async with asyncio.timeout(2):
            await harness.hermes.stop(harness.session)
        while len(model.requests) < 2:
            await asyncio.sleep(0.001)

        first = (await harness.ended()).outcome
        assert first is Outcome.STOPPED
        assert (await harness.kinds()).count("run_started") == 2


async def test_every_word_of_a_burst_is_answered_once(tmp_path):
    model = ScriptedModel(lambda heard: Say(f"Reply {len(model.requests)}."))
    async with Harness(tmp_path, model).open() as harness:
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(harness.tell(f"m{number}", message_id=str(number)))
        while (await harness.store.inbox.find("test", "19")).state != "answered" or harness.hermes.runs(
            harness.session
        ):
            await asyncio.sleep(0.005)

        said = sorted(line for line in await harness.transcript() if line.startswith("user"))
        assert said == sorted(f"user: m{number}" for number in range(20))


async def test_a_stop_that_comes_before_the_mail_is_read_is_about_that_mail(tmp_path):
    model = ScriptedModel([Say("Never.")])
    async with Harness(tmp_path, model).open() as harness:
        harness.access.clear()
        await harness.tell("One", message_id="1")
        while not harness.hermes.runs(harness.session):
            await asyncio.sleep(0)
        stopping = asyncio.create_task(harness.hermes.stop(harness.session))
        await asyncio.sleep(0.05)
        harness.access.set()
        await stopping

        assert await harness.transcript() == ["user: One"]
        assert (await harness.store.inbox.find("test", "1")).state == "refused"
        assert not harness.hermes.runs(harness.session)


async def test_a_message_that_interrupts_before_the_first_was_read_is_read_with_it(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Say("Both.")])).open() as harness:
        harness.access.clear()
        await harness.tell("One")
        while not harness.hermes.runs(harness.session):
            await asyncio.sleep(0)
        await harness.tell("Two", busy=Busy.INTERRUPT, message_id="2")
        harness.access.set()
        while (await harness.store.inbox.find("test", "2")).state != "answered":
            await asyncio.sleep(0.005)

        assert [line for line in await harness.transcript() if line.startswith("user")] == ["user: One", "user: Two"]


def took(*numbers: int) -> tuple[Withdrawals, list[str]]:
    calls: list[str] = []
    back = Withdrawals(overtaken=lambda: calls.append("overtaken"))
    for number in numbers:
        back.took(letter(number, f"words {number}").inbound)
    return back, calls


def test_a_run_is_overtaken_when_each_of_its_messages_was_deleted():
    back, calls = took(1, 2)

    back.announce("1")
    assert calls == []
    back.announce("2")
    assert calls == ["overtaken"]


def test_a_run_that_took_nothing_is_not_overtaken():
    back, calls = took()

    back.announce("1")
    assert calls == []


def test_it_lapses_when_it_has_read_so():
    back, _ = took(1)
    assert not back.lapsed

    back.gone.add("1")
    assert back.lapsed
    back.next_run()
    assert not back.lapsed


def test_answers_are_nothing_to_answer_and_a_new_text_is_the_same_message():
    back, _ = took(1)
    back.took(letter(2, "yes", answers="q").inbound)
    back.took(replace(letter(3, "new").inbound, replaces="1"))
    back.took(letter(4).inbound)

    assert {key: words and words.text for key, words in back.words.items()} == {"1": "new", "4": None}
    assert isinstance(back.words["1"], Text)


def test_nobody_has_to_listen():
    back = Withdrawals()
    back.took(letter(1).inbound)
    back.announce("1")


def test_what_was_read_before_an_interruption_counts():
    back, calls = took(1, 2)

    back.read(["1", "of another run"])
    assert (back.gone, back.lapsed) == ({"1"}, False)
    back.announce("2")
    assert calls == ["overtaken"]
