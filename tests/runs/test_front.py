"""The front door: what is accepted is worked on once, wherever; what is held is held alone."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from itertools import accumulate

import pytest

from hermes_agent.agent.loop import TOO_LATE
from hermes_agent.core.chat import TAKEN_BACK, Busy
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import HermesError, UnknownSession
from hermes_agent.core.events import (
    Answered,
    Asked,
    MessageTaken,
    Notice,
    Outcome,
    RunEnded,
    RunStarted,
    ToolStarted,
)
from hermes_agent.core.tool import Question
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.front import Hermes
from hermes_agent.store.workers import Timings, Workers
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import OWNER, PLACE, Harness, Piece, tool


def counting():
    model = ScriptedModel(lambda heard: Say(f"Reply {len(model.requests)}."))
    return model


async def test_a_message_that_is_submitted_twice_has_one_row_and_one_reply(tmp_path):
    model = counting()
    async with Harness(tmp_path, model).open() as harness:
        await harness.say("Hi", message_id="7")
        await harness.tell("Hi", message_id="7")
        await harness.say("More")

        assert len(model.requests) == 2


async def test_a_stop_where_nothing_runs_says_so(tmp_path):
    async with Harness(tmp_path, counting()).open() as harness:
        assert not await harness.hermes.stop(harness.session)
        assert not harness.hermes.stop_now(harness.session)
        await harness.say("Hi")
        await harness.rest()
        assert not await harness.hermes.stop(harness.session)


async def test_what_may_be_said_beside_a_run_may_be_said_right_after_its_end(tmp_path):
    async with Harness(tmp_path, counting()).open() as harness:
        for words in ("Hi", "And?", "Well?"):
            await harness.say(words)
            async with harness.hermes.holding(harness.session, beside_run=True) as journal:
                await journal.commit(Notice(text=words))

        assert (await harness.kinds()).count("notice") == 3


async def test_two_stops_at_once_end_one_run(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Hang()])).open() as harness:
        await harness.tell("Hi")
        await harness.until(MessageTaken)
        async with asyncio.timeout(2), asyncio.TaskGroup() as group:
            stops = [group.create_task(harness.hermes.stop(harness.session)) for _ in range(3)]

        assert [stop.result() for stop in stops] == [True, True, True]
        assert (await harness.kinds()).count("run_ended") == 1


async def test_what_was_under_way_at_close_goes_on_with_the_next_process(tmp_path):
    harness = Harness(tmp_path, ScriptedModel([Hang()]))
    async with harness.open():
        await harness.tell("Hi", message_id="1")
        await harness.until(MessageTaken)
    harness.model = counting()
    async with harness.open():
        number = (await harness.log())[-1].number
        assert await harness.hermes.resume(harness.session)
        assert (await harness.ended(number)).text == "Reply 1."
        await harness.rest()
        assert not await harness.hermes.resume(harness.session)
        assert await harness.transcript() == ["user: Hi", "assistant: Reply 1."]


async def test_resuming_what_runs_here_is_nothing_to_do(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Hang()])).open() as harness:
        await harness.tell("Hi")
        await harness.until(MessageTaken)

        assert await harness.hermes.resume(harness.session)


async def test_a_session_that_runs_cannot_be_held(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Hang()])).open() as harness:
        await harness.tell("Hi")
        await harness.until(MessageTaken)
        with pytest.raises(HermesError, match="is busy"):
            async with harness.hermes.holding(harness.session):
                pass


async def test_mail_that_comes_while_a_session_is_held_is_worked_on_afterwards(tmp_path):
    async with Harness(tmp_path, counting()).open() as harness:
        async with harness.hermes.holding(harness.session) as journal:
            await harness.tell("Hi")
            await journal.commit(Notice(text="held"))
        ended = await harness.ended()

        assert ended.text == "Reply 1."
        assert (await harness.kinds())[0] == "notice"


async def test_a_hold_of_what_is_not_there_leaves_nothing_held(tmp_path):
    async with Harness(tmp_path, counting()).open() as harness:
        for _ in range(2):
            with pytest.raises(UnknownSession):
                await hold(harness, "20260101_000000_abcdef")


async def hold(harness: Harness, session: str) -> None:
    async with harness.hermes.holding(session) as journal:
        await journal.commit(Notice(text="held"))


async def test_what_a_dead_process_held_can_be_held(tmp_path):
    harness = Harness(tmp_path, counting())
    async with harness.open():
        assert await harness.store.lanes.hold(harness.session, "cli")
        harness.store.workers._present = False  # dies: nothing is given back
        await harness.store.workers._presence.leave()
    async with harness.open():
        async with harness.hermes.holding(harness.session) as journal:
            await journal.commit(Notice(text="mine"))

        assert await harness.kinds() == ["notice"]


async def test_two_processes_on_one_session_have_one_run_at_a_time(tmp_path):
    async def slow(_, __):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.02)
        under_way -= 1
        return "ok"

    under_way, most = 0, 0
    step = tool("step")
    step.body = slow
    one_model = ScriptedModel(lambda heard: Call("step") if heard.last.role == "user" else Say("Done."))
    one = Harness(tmp_path, one_model, (step,))
    async with one.open():
        two = Harness(tmp_path, one_model, (step,), session=one.session)
        async with two.open():
            for number in range(4):
                await one.tell(f"one {number}", message_id=f"1-{number}")
                await two.tell(f"two {number}", message_id=f"2-{number}")
            while {(await one.store.inbox.find("test", f"{who}-3")).state for who in (1, 2)} != {"answered"}:
                await asyncio.sleep(0.01)

        assert most == 1
        log = await one.log()
        assert [entry.number for entry in log] == list(range(1, len(log) + 1))
        words = sorted(line for line in await one.transcript() if line.startswith("user"))
        assert words == sorted(f"user: {who} {number}" for who in ("one", "two") for number in range(4))
        steps = [isinstance(entry.event, RunStarted) - isinstance(entry.event, RunEnded) for entry in log]
        assert set(accumulate(steps)) == {0, 1}


async def test_a_run_is_followed_and_stopped_from_another_process(tmp_path):
    one = Harness(tmp_path, ScriptedModel([Hang(), Say("Next.")]))
    async with one.open():
        two = Harness(tmp_path, counting(), session=one.session)
        async with two.open():
            following = asyncio.ensure_future(two.ended())
            await one.tell("Hi")
            await one.until(MessageTaken)
            async with asyncio.timeout(2):
                assert await two.hermes.stop(one.session)
                assert (await one.ended()).outcome is Outcome.STOPPED
            assert (await following).outcome is Outcome.STOPPED


async def test_a_message_that_is_deleted_in_another_process_ends_its_run_without_a_word(tmp_path):
    one = Harness(tmp_path, ScriptedModel([Hang()]))
    async with one.open():
        two = Harness(tmp_path, counting(), session=one.session)
        async with two.open():
            await one.tell("Hi", message_id="1")
            await one.until(MessageTaken)
            back = replace(one.inbound("", message_id="1:deleted"), withdraws="1")
            async with asyncio.timeout(5):
                assert await two.hermes.withdraw(back) == [one.session]
                ended = await one.ended()

            assert (ended.outcome, ended.text) == (Outcome.STOPPED, "")
            assert (await one.store.inbox.find("test", "1")).reason == TAKEN_BACK
            assert not await one.store.sessions.list(busy=True)


async def test_an_answer_is_for_a_question_that_is_open_and_not_for_another_run(tmp_path):
    async def ask(_, context):
        return await context.ask(Question(text="Which?")) + await context.ask(Question(text="Sure?", about="it"))

    model = ScriptedModel(lambda heard: Hang() if heard.last.text == "Next" else Call("ask"))
    async with Harness(tmp_path, model, (Piece("ask", ask, Effect.ASKS),)).open() as harness:
        await harness.tell("Go")
        first = (await harness.until(Asked)).event.question
        await harness.tell("this", answers=first, message_id="1")
        answered = (await harness.until(Answered)).number
        second = (await harness.until(Asked, answered)).event.question

        await harness.tell("this", answers=first, message_id="1")  # The platform tells it again.
        with pytest.raises(HermesError, match=TOO_LATE):
            await harness.tell("that", answers=first)
        await harness.hermes.stop(harness.session)
        await harness.tell("Next")
        await harness.until(MessageTaken, answered)
        for question in (first, second, "never asked"):
            with pytest.raises(HermesError, match=TOO_LATE):
                await harness.tell("yes", answers=question)
        await harness.hermes.stop(harness.session)

        assert (await harness.kinds()).count("answered") == 1


async def test_a_stop_from_another_process_ends_that_run_and_not_the_next_one(tmp_path):
    model = ScriptedModel(lambda heard: Call("wait") if len(model.requests) == 1 else Call("short"))
    model_two = ScriptedModel([])

    def script(heard):
        if len(model.requests) == 1:
            return Hang()
        return Call("short") if len(model.requests) == 2 else Say("The next one.")

    model._script = script
    one = Harness(tmp_path, model, (tool("short", seconds=0.2),))
    async with one.open():
        two = Harness(tmp_path, model_two, session=one.session)
        async with two.open():
            await one.tell("Hi")
            await one.until(MessageTaken)
            await one.tell("Later", busy=Busy.QUEUE)
            await two.hermes.stop(one.session)
            first = await one.ended()
            number = next(entry.number for entry in await one.log() if isinstance(entry.event, RunEnded))
            await one.until(MessageTaken, number)
            await one.tell("steered")  # a ring, while the second run is under way
            second = await one.ended(number)

        assert first.outcome is Outcome.STOPPED
        assert (second.outcome, second.text) == (Outcome.ANSWERED, "The next one.")


async def test_a_process_sleeps_while_somebody_elses_session_waits_for_its_owner(tmp_path):
    class Counting(SystemClock):
        looks = 0

        def monotonic(self) -> float:
            self.looks += 1
            return super().monotonic()

    clock = Counting()
    async with Harness(tmp_path, counting(), clock=clock).open() as harness:
        other = await harness.hermes.open_session(PLACE, OWNER, workspace="/", new=True)
        await harness.store.inbox.accept(harness.inbound("for the other"), other.id, "cli")
        await harness.say("Hi")
        await harness.rest()
        before = clock.looks
        await harness.clock.sleep(0.3)

        assert clock.looks - before < 30


async def test_mail_for_a_session_that_is_not_there_is_told(tmp_path):
    async with Harness(tmp_path, counting()).open() as harness:
        harness.session = "20260101_000000_abcdef"
        events = harness.hermes.watch(harness.session)
        async with aclosing(events):
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            await harness.tell("Hi")
            with pytest.raises(UnknownSession):
                await waiting


async def test_a_call_is_cancelled_at_close_and_not_reported_as_done(tmp_path):
    harness = Harness(tmp_path, ScriptedModel([Call("wait")]), (tool("wait", effect=Effect.EXEC, seconds=60),))
    async with harness.open():
        await harness.tell("Hi")
        await harness.until(ToolStarted)
    async with harness.open():
        assert (await harness.kinds())[-1] == "tool_started"


async def test_a_session_begins_with_its_first_message_in_one_commit(tmp_path):
    async with Harness(tmp_path, counting()).open() as harness:
        begun = await harness.hermes.start_session(harness.inbound("Hi", message_id="7"), workspace=str(tmp_path))
        again = await harness.hermes.start_session(harness.inbound("Hi", message_id="7"), workspace=str(tmp_path))
        harness.session = begun.session

        assert (await harness.ended()).text == "Reply 1."
        assert again.inbox is None
        assert again.session == begun.session
        assert (await harness.store.sessions.current(PLACE.key)).id == begun.session


async def test_a_process_for_everybody_begins_with_what_waits(tmp_path):
    harness = Harness(tmp_path, counting())
    async with harness.open():
        await harness.store.inbox.accept(harness.inbound("Hi"), harness.session, "all")
    async with harness.open():
        everybody = Hermes(
            store=harness.store,
            build=harness.building,
            seam=Seam(harness.clock, harness.ids),
            queue="all",
            own_only=False,
        )
        async with asyncio.timeout(10):
            async for seen in everybody.follow(harness.session, 0):
                last = seen.event
        await everybody._scheduler.close()

        assert last.text == "Reply 1."


async def test_a_conversation_that_two_begin_at_once_has_one_session(tmp_path):
    chat = replace(PLACE, chat="another")
    async with Harness(tmp_path, counting()).open() as harness:
        async with asyncio.TaskGroup() as group:
            opened = [
                group.create_task(harness.hermes.open_session(chat, OWNER, workspace=str(tmp_path))) for _ in range(3)
            ]

        assert len({task.result().id for task in opened}) == 1
        assert len(await harness.store.sessions.list()) == 2


async def test_a_session_that_a_command_holds_for_long_is_not_taken_from_it(tmp_path):
    harness = Harness(tmp_path, counting(), timings=Timings(sweep=0.02, ttl=0.3))
    async with harness.open():
        async with harness.hermes.holding(harness.session) as journal:
            assert await gone_by(harness.store.workers, sweeps=3)
            await journal.commit(Notice(text="Done.", level="info"))

        assert await harness.store.lanes.hold(harness.session, "cli") is not None


async def gone_by(workers: Workers, sweeps: int) -> bool:
    """Whether this worker looked so often for lanes that it does not work on."""
    seen, moment = 0, workers._swept
    async with asyncio.timeout(10):
        while seen < sweeps:
            await asyncio.sleep(0.01)
            seen, moment = seen + (workers._swept != moment), workers._swept
    return True
