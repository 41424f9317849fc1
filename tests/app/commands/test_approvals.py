"""Answers to what a run asks, and the end of asking."""

from dataclasses import replace
from time import monotonic

import pytest

from hermes_agent.app.commands.command import Desk, perform
from hermes_agent.core.answers import open_in
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Answered, Asked, Entry, Outcome, RunEnded, ToolEnded
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import another, place, settle_home
from tests.gateway.harness import eventually

DANGEROUS = {"command": "rm -rf build$NONE"}


async def results(here) -> list[str]:
    return [entry.event.message.parts[0].text for entry in await here.log() if isinstance(entry.event, ToolEnded)]


async def test_yolo_is_for_one_run(tmp_path):
    script = [Call("terminal", DANGEROUS, id="a"), Say("Done."), Call("terminal", DANGEROUS, id="b"), Say("Done.")]
    async with place(tmp_path, script) as here:
        assert "next run" in await here.text("/yolo")
        await here.say("Clean up")
        assert "asked" not in [entry.event.kind for entry in await here.log()]

        after = await here.tell("Clean up")
        asked = await here.until(Asked, after)
        await here.type_and_submit("/deny not now")
        await here.ended(asked.number)

        assert "said: not now" in (await results(here))[-1]


async def test_an_approval_is_given_by_a_command(tmp_path):
    async with place(tmp_path, [Call("terminal", DANGEROUS), Say("Done.")]) as here:
        (tmp_path / "work/build").mkdir()
        after = await here.tell("Clean up")
        asked = await here.until(Asked, after)
        await here.type_and_submit("/approve")
        await here.ended(asked.number)

        assert not (tmp_path / "work/build").exists()
        with pytest.raises(HermesError, match="No approval is open"):
            await here.type("/approve")


async def test_an_approval_says_for_how_long_and_a_refusal_never_approves(tmp_path):
    async with place(tmp_path, [Call("terminal", DANGEROUS), Say("Done.")]) as here:
        asked = await here.until(Asked, await here.tell("Clean up"))
        with pytest.raises(HermesError, match="once, session, always"):
            await here.type("/approve forever")

        await here.type_and_submit("/deny once")
        await here.ended(asked.number)

        assert "said no" in (await results(here))[-1]


async def test_the_time_of_a_call_is_its_own_and_not_the_person_s(tmp_path):
    async with place(tmp_path, [Call("terminal", DANGEROUS), Say("Done.")]) as here:
        asked = await here.until(Asked, await here.tell("Clean up"))
        until = monotonic() + 1.0
        await eventually(lambda: monotonic() > until)
        await here.type_and_submit("/deny")
        await here.ended(asked.number)

        (ended,) = [entry.event for entry in await here.log() if isinstance(entry.event, ToolEnded)]
        assert ended.seconds < 0.9


async def test_nobody_else_answers_what_was_asked(tmp_path):
    async with place(tmp_path, [Call("terminal", DANGEROUS), Say("Done.")]) as here:
        after = await here.tell("Clean up")
        asked = await here.until(Asked, after)
        stranger = Principal(platform="telegram", user="7", standing=Standing.GUEST)
        answer = replace(here.inbound("once", answers=asked.event.question), principal=stranger)

        with pytest.raises(HermesError, match="Only the person"):
            await here.tell(answer)
        await here.tell(here.inbound("deny", answers=asked.event.question))
        await here.ended(asked.number)


async def test_a_guest_cannot_end_the_questions(tmp_path):
    async with place(tmp_path, [Say("Done.")]) as here:
        stranger = Principal(platform="telegram", user="7", standing=Standing.GUEST)
        inbound = replace(here.inbound("/yolo"), principal=stranger)

        with pytest.raises(HermesError, match="Guests"):
            await perform(Desk(runtime=here.runtime, record=here.record, inbound=inbound))


async def test_yolo_off_brings_the_questions_back(tmp_path):
    async with place(tmp_path, [Call("terminal", DANGEROUS), Say("Done.")]) as here:
        await here.type("/yolo")
        assert await here.text("/yolo off") == "I will ask again before dangerous calls."
        after = await here.tell("Clean up")
        asked = await here.until(Asked, after)
        await here.tell(here.inbound("no", answers=asked.event.question))
        await here.ended(asked.number)


def telegram(here, line: str, standing: Standing = Standing.OWNER, user: str = "5"):
    """The line as it comes from somebody's chat."""
    principal = Principal(platform="telegram", user=user, standing=standing)
    conversation = Conversation(platform="telegram", chat_kind="dm", chat=user)
    return replace(here.inbound(line), source="telegram", principal=principal, conversation=conversation)


async def test_what_is_asked_in_one_place_is_answered_from_another_process_once(tmp_path):
    script = [Call("terminal", DANGEROUS), Say("Done.")]
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        async with another(home, server) as here, another(home, server) as there:
            (tmp_path / "work/build").mkdir()
            after = await here.tell("Clean up")
            await here.until(Asked, after)

            async def say(line: str) -> str:
                desk = Desk(runtime=there.runtime, record=there.record, inbound=telegram(there, line))
                done = await perform(desk)
                assert done is not None
                return done.text

            listed = await say("/approvals")
            name = listed.split()[0]
            assert "rm -rf build$NONE" in listed
            with pytest.raises(HermesError, match="Say what you decide"):
                await say(f"/approvals {name}")
            with pytest.raises(HermesError, match="No open approval is called"):
                await say("/approvals 000000 once")
            assert (await say(f"/approvals {name} once")).startswith("once: ")
            await here.ended(after)

            assert not (tmp_path / "work/build").exists()
            assert await say("/approvals") == "No approval is open."
            with pytest.raises(HermesError, match="No open approval is called"):
                await say(f"/approvals {name} always")


async def test_where_others_read_along_nothing_of_other_chats_is_shown(tmp_path):
    async with place(tmp_path, [Call("terminal", DANGEROUS), Say("Done.")]) as here:
        after = await here.tell("Clean up")
        asked = await here.until(Asked, after)
        group = Conversation(platform="telegram", chat_kind="group", chat="-9")
        name = (await here.text("/approvals")).split()[0]

        def desk(line: str) -> Desk:
            inbound = replace(telegram(here, line), conversation=group)
            return Desk(runtime=here.runtime, record=here.record, inbound=inbound)

        assert (await perform(desk("/approvals"))).text == "No approval is open."
        with pytest.raises(HermesError, match="No open approval is called"):
            await perform(desk(f"/approvals {name} once"))
        await here.tell(here.inbound("deny", answers=asked.event.question))
        await here.ended(asked.number)


async def test_a_no_from_elsewhere_has_its_reason_and_a_strangers_list_is_empty_or_refused(tmp_path):
    async with place(tmp_path, [Call("terminal", DANGEROUS), Say("Done.")]) as here:
        after = await here.tell("Clean up")
        await here.until(Asked, after)
        guest, member = (
            Desk(runtime=here.runtime, record=here.record, inbound=telegram(here, "/approvals", standing, "7"))
            for standing in (Standing.GUEST, Standing.MEMBER)
        )
        with pytest.raises(HermesError, match="Guests"):
            await perform(guest)
        assert (await perform(member)).text == "No approval is open."

        name = (await here.text("/approvals")).split()[0]
        await here.type(f"/approvals {name} deny keep it")
        await here.ended(after)

        assert "said: keep it" in (await results(here))[-1]


def test_of_two_that_wait_the_first_is_still_asked_when_the_second_was_answered():
    first, second = (Asked(question=each, text=each, choices=("once",), purpose="approval") for each in "ab")
    said = Answered(question="b", answer="once", principal="7")
    over = RunEnded(outcome=Outcome.STOPPED, text="", turns=1)
    events = [first, second, said, over]
    log = [Entry(number=number, run="r", at=1.0, event=event) for number, event in enumerate(events, 1)]

    found = [[each.asked for each in open_in(log[:length])] for length in range(5)]
    assert found == [[], [first], [first, second], [first], []]
