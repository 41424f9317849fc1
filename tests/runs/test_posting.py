"""What runs say through the outbox, in the commit that makes it so."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.stop import NEW_MESSAGE
from hermes_agent.core.chat import Button, Conversation, SlotState
from hermes_agent.core.errors import NoModel
from hermes_agent.core.events import Asked, Entry, MessageTaken, Notice, Outcome, RunEnded, RunStarted
from hermes_agent.core.messages import said
from hermes_agent.core.tool import CallContext, Question
from hermes_agent.providers.demo.script import Answer, Call, Pace, Say
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.front import Hermes
from hermes_agent.runs.one_run import NOT_ANSWERED, Posting, Service, asking, reply_key, said_by
from hermes_agent.store.database import open_store
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import OWNER, Harness, Piece

CHAT = Conversation(platform="telegram", chat="42", topic="work")


@asynccontextmanager
async def served(harness: Harness, *, here: bool = True) -> AsyncIterator[Harness]:
    """The house as a gateway: every lane of its queue, and the outbox for what telegram's sessions say."""
    harness.store = store = await open_store(str(harness.path / "hermes.db"))
    posting = Posting(outbox=store.outbox, delivers=lambda name: name == "telegram", here=lambda _: here)
    harness.hermes = Hermes(
        store=store,
        build=harness.building,
        seam=Seam(harness.clock, harness.ids),
        own_only=False,
        service=Service(most=4, posting=posting),
    )
    record = await harness.hermes.open_session(CHAT, OWNER, workspace=str(harness.path))
    harness.session = record.id
    try:
        yield harness
    finally:
        await harness.hermes.close()


def entry(event: object, number: int = 3) -> Entry:
    return Entry(number=number, run="r", at=1.0, event=event)


def ended(text: str, outcome: Outcome = Outcome.ANSWERED, reason: str = "") -> RunEnded:
    return RunEnded(outcome=outcome, text=text, turns=1, reason=reason)


async def test_a_session_may_speak_to_several_conversations_or_to_none(tmp_path: Path):
    other = Conversation(platform="telegram", chat="7")
    async with served(Harness(tmp_path, ScriptedModel([Say("Hello."), Say("Again.")]))) as harness:
        service = harness.hermes._scheduler.service
        told: list[Conversation] = [CHAT, other]
        service = replace(service, posting=replace(service.posting, told_to=lambda _: tuple(told)))
        harness.hermes._scheduler.service = service
        await harness.say("Hi")
        slots = await harness.store.outbox.claim(["telegram"])
        told.clear()
        await harness.say("And again")

        assert [(slot.to.place, slot.content.text) for slot in slots] == [
            (CHAT.place, "Hello."),
            (other.place, "Hello."),
        ]
        assert [bool(slot.answers) for slot in slots] == [True, False]
        assert sum((await harness.store.outbox.tally()).states.values()) == 2  # The second run spoke to nobody.
        assert sum((await harness.store.outbox.tally()).states.values()) == 2


@pytest.mark.parametrize("here", [True, False])
async def test_a_reply_is_in_the_outbox_with_the_end_of_its_run(tmp_path: Path, here: bool):
    async with served(Harness(tmp_path, ScriptedModel([Say("Hello.")])), here=here) as harness:
        await harness.say("Hi", message_id="42:7")

        (slot,) = await harness.store.outbox.claim(("telegram",))

        assert (slot.content.text, slot.to, slot.session) == ("Hello.", CHAT.place, harness.session)
        assert slot.answers == "42:7"
        run = (await harness.store.history.entries(harness.session))[-1].run
        assert slot.key == reply_key(harness.session, run)


async def test_a_session_that_is_listened_to_says_nothing_there(tmp_path: Path):
    async with Harness(tmp_path, ScriptedModel([Say("Hello.")])).open() as harness:
        await harness.say("Hi")

        assert (await harness.store.outbox.tally()).states == {}


async def test_each_of_two_replies_goes_out_where_the_second_message_came_during_the_first_run(tmp_path: Path):
    model = ScriptedModel(
        lambda _: Answer(pieces=(Say(f"Reply {len(model.requests)}."),), pace=Pace(between=0.02, characters=2))
    )
    async with served(Harness(tmp_path, model)) as harness:
        await harness.tell("One", message_id="1")
        await harness.until(RunStarted)
        await harness.tell("Two", message_id="2")
        first = await harness.until(RunEnded)
        await harness.until(RunEnded, first.number)
        await harness.rest()

        (one,) = await harness.store.outbox.claim(("telegram",))
        await harness.store.outbox.complete(one, SlotState.SENT, ())
        (two,) = await harness.store.outbox.claim(("telegram",))

        assert [one.content.text, two.content.text] == ["Reply 1.", "Reply 2."]


async def test_a_question_goes_out_with_buttons_and_shows_its_answer(tmp_path: Path):
    async def ask(_: object, context: CallContext) -> str:
        return await context.ask(Question(text="Which?", choices=("red", "blue")))

    harness = Harness(tmp_path, ScriptedModel([Call("ask", {}), Say("Done.")]), (Piece("ask", ask),))
    async with served(harness) as harness:
        await harness.tell("Hi")
        await harness.until(Asked)
        (slot,) = await harness.store.outbox.claim(("telegram",))
        assert [button.value for button in slot.content.buttons] == ["red", "blue"]
        assert await harness.hermes.scheduler.question(harness.session) == slot.content.question
        await harness.store.outbox.give_back()

        await harness.tell("blue", answers=slot.content.question)
        await harness.rest()

        found = await harness.store.outbox.find(slot.key)
        assert found is not None
        assert found.content.text.endswith("→ blue")
        assert not found.content.buttons


async def test_a_question_of_a_run_that_was_interrupted_and_cannot_go_on_loses_its_buttons(tmp_path: Path):
    async def ask(_: object, context: CallContext) -> str:
        return await context.ask(Question(text="Which?", choices=("red", "blue")))

    async with served(Harness(tmp_path, ScriptedModel([Call("ask", {})]), (Piece("ask", ask),))) as harness:
        await harness.tell("Hi")
        await harness.until(Asked)
        (slot,) = await harness.store.outbox.claim(("telegram",))
        await harness.store.outbox.give_back()

    @asynccontextmanager
    async def modelless(*_: object) -> AsyncIterator[Agent]:
        raise NoModel("There is no key.")
        yield

    after = Harness(tmp_path, ScriptedModel([]))
    after.building = modelless
    async with served(after):
        after.hermes.scheduler.wake()
        ended = await after.until(RunEnded)
        await after.rest()

        found = await after.store.outbox.find(slot.key)
        assert (ended.event.text, found is not None) == ("There is no key.", True)
        assert found.content.text.endswith(NOT_ANSWERED)
        assert not found.content.buttons


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (ended("Fine."), "Fine."),
        (ended(" "), " "),
        (ended(""), "(The reply is empty.)"),
        (ended("Stopped.", Outcome.STOPPED, "stopped"), "Stopped."),
        (ended("Stopped.", Outcome.STOPPED, NEW_MESSAGE), "Interrupted by your new message."),
        (Notice(text="The budget is nearly used up.", level="warning"), "The budget is nearly used up."),
    ],
)
def test_what_people_should_know_is_said(event: object, text: str):
    told = said_by("s", entry(event))

    assert told is not None
    assert told[1].text == text


@pytest.mark.parametrize("event", [ended("[SILENT]"), Notice(text="It goes on."), MessageTaken(message=said("Hi"))])
def test_what_is_nobodys_business_is_not_said(event: object):
    assert said_by("s", entry(event)) is None


def test_a_decision_says_how_to_give_it_in_words():
    asked = Asked(question="q", text="Run `rm`?", choices=("once", "deny"), purpose="approval")

    content = asking(asked)

    assert "/approve" in content.text
    assert content.buttons == (Button(label="Once", value="once"), Button(label="No", value="deny"))
    assert content.question == "q"


def test_a_fact_has_its_choices_numbered():
    asked = Asked(question="q", text="Which?", choices=("red", "blue"), purpose="clarify")

    assert asking(asked).text == "Which?\n1. red\n2. blue"


async def test_mail_for_a_session_that_never_was_is_refused_once(tmp_path: Path):
    async with served(Harness(tmp_path, ScriptedModel([]))) as harness:
        await harness.store.inbox.accept(harness.inbound("Hi", message_id="1"), "20260101_000000_000000", "cli")
        harness.hermes.scheduler.wake()

        while (mail := await harness.store.inbox.find("test", "1")) is None or mail.state == "new":
            await asyncio.sleep(0.01)

        assert mail.state == "refused"
        assert "no session" in mail.reason
