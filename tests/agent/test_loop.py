"""A person says something; the agent asks, acts, and answers."""

import asyncio
import json
import time

import pytest

from hermes_agent.core.chat import Busy
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import LimitReached
from hermes_agent.core.events import Asked, MessageTaken, Outcome, Replied, ToolEnded, ToolStarted
from hermes_agent.core.spending import Limits
from hermes_agent.core.tool import Question
from hermes_agent.providers.demo.script import Answer, Call, Say
from hermes_agent.testing.faults import Hang, Status
from hermes_agent.testing.scripted import ScriptedModel, tries
from tests.agent.harness import Harness, Piece, tool


async def test_a_question_is_answered(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Say("Hello.")])).open() as harness:
        ended = await harness.say("Hi")

        assert (ended.outcome, ended.text, ended.turns) == (Outcome.ANSWERED, "Hello.", 1)
        assert await harness.kinds() == ["run_started", "message_taken", "prefix_frozen", "replied", "run_ended"]


async def test_a_tool_is_called_and_its_result_is_read(tmp_path):
    model = ScriptedModel([Call("look", {"at": "x"}), Say("It is blue.")])
    async with Harness(tmp_path, model, (tool("look", "blue"),)).open() as harness:
        ended = await harness.say("What colour?")

        assert ended.text == "It is blue."
        assert await harness.transcript() == [
            "user: What colour?",
            "assistant: look({'at': 'x'})",
            "tool: blue",
            "assistant: It is blue.",
        ]


async def test_the_words_stream_before_the_reply_is_there(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Say("One two three four five.")])).open() as harness:
        await harness.tell("Go")
        kinds = [seen.event.kind async for seen in harness.hermes.follow(harness.session, 0)]

        assert "text_delta" in kinds
        assert kinds.index("turn_started") < kinds.index("text_delta") < kinds.index("replied")


async def test_a_second_message_continues_the_conversation(tmp_path):
    model = ScriptedModel([Say("One."), Say("Two.")])
    async with Harness(tmp_path, model).open() as harness:
        await harness.say("First")
        ended = await harness.say("Second")

        assert ended.text == "Two."
        shown = [message.text for message in model.requests[1].messages]
        assert shown == ["First", "One.", "Second", "Two."]  # it grew by the reply after it was asked
        assert model.requests[0].prefix == model.requests[1].prefix


async def test_the_same_message_twice_counts_once(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Say("One."), Say("Two.")])).open() as harness:
        await harness.say("First", message_id="7")
        await harness.tell("First", message_id="7")

        assert (await harness.say("Second")).text == "Two."
        assert [line for line in await harness.transcript() if line.startswith("user")] == [
            "user: First",
            "user: Second",
        ]


async def test_reads_of_one_turn_wait_side_by_side(tmp_path):
    model = ScriptedModel([[Call("look", {"n": n}) for n in range(8)], Say("Done.")])
    async with Harness(tmp_path, model, (tool("look", seconds=0.1),)).open() as harness:
        began = time.monotonic()
        await harness.say("Go")

        assert time.monotonic() - began < 0.4
        results = [line for line in await harness.transcript() if line.startswith("tool")]
        assert len(results) == 8


async def test_results_stand_in_the_order_asked(tmp_path):
    async def late(arguments, _):
        await asyncio.sleep(0.03 * (3 - arguments["n"]))
        return str(arguments["n"])

    model = ScriptedModel([[Call("look", {"n": n}) for n in range(3)], Say("Done.")])
    async with Harness(tmp_path, model, (Piece("look", late),)).open() as harness:
        await harness.say("Go")

        assert [line for line in await harness.transcript() if line.startswith("tool")] == [
            "tool: 0",
            "tool: 1",
            "tool: 2",
        ]
        came = [
            entry.event.message.parts[0].text for entry in await harness.log() if isinstance(entry.event, ToolEnded)
        ]
        assert came == ["2", "1", "0"]


async def test_writes_of_one_turn_run_one_after_the_other(tmp_path):
    under_way, most = 0, 0

    async def write(_, __):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return "ok"

    model = ScriptedModel([[Call("change", {"n": n}) for n in range(4)], Say("Done.")])
    async with Harness(tmp_path, model, (Piece("change", write, Effect.WRITES),)).open() as harness:
        await harness.say("Go")

        assert most == 1


async def test_the_intent_of_a_write_is_in_the_log_before_it_happens(tmp_path):
    seen = []

    async def write(_, __):
        seen.extend(entry.event.kind for entry in await harness.log())
        seen.extend(record.intent.tool for record in await harness.store.effects.open(harness.session))
        return "ok"

    harness = Harness(tmp_path, ScriptedModel([Call("change"), Say("Done.")]), (Piece("change", write, Effect.WRITES),))
    async with harness.open():
        await harness.say("Go")

        assert seen[-2:] == ["tool_started", "change"]
        assert await harness.store.effects.open(harness.session) == []


@pytest.mark.parametrize(
    ("error", "words", "quoted"),
    [
        (ZeroDivisionError("by zero"), "The tool failed: ZeroDivisionError:", "\nby zero"),
        (PermissionError(13, "Permission denied", "/x"), "Something cannot be used: permission denied.", "\n/x"),
        (PermissionError(), "Something cannot be used: permission denied.", ""),
        (OSError(40, "Too many links", "/x"), "Something cannot be used: too many links.", "\n/x"),
    ],
)
async def test_a_failed_tool_is_an_answer_not_a_crash(tmp_path, error, words, quoted):
    async def broken(_, __):
        raise error

    model = ScriptedModel([Call("broken"), Say("It failed.")])
    async with Harness(tmp_path, model, (Piece("broken", broken),)).open() as harness:
        ended = await harness.say("Go")

        assert ended.outcome is Outcome.ANSWERED
        said = (await harness.transcript())[2].removeprefix("tool: ")
        assert said.endswith(f"}}{quoted}")
        assert json.loads(said.removesuffix(quoted)) == {"error": words, "kind": "failed"}


async def test_an_unknown_tool_gets_a_hint(tmp_path):
    model = ScriptedModel([Call("lok"), Say("Oh.")])
    async with Harness(tmp_path, model, (tool("look"),)).open() as harness:
        await harness.say("Go")

        answer = json.loads((await harness.transcript())[2].removeprefix("tool: "))
        assert (answer["kind"], answer["hint"]) == ("unknown_tool", "There are: look.")


async def test_arguments_that_do_not_fit_get_the_schema_path(tmp_path):
    model = ScriptedModel([Call("look", {"bad": 1}), Say("Oh.")])
    async with Harness(tmp_path, model, (tool("look"),)).open() as harness:
        await harness.say("Go")

        answer = json.loads((await harness.transcript())[2].removeprefix("tool: "))
        assert answer == {"error": "`$.bad`: not allowed", "kind": "bad_arguments"}


async def test_a_model_that_only_calls_what_is_not_there_is_stopped(tmp_path):
    model = ScriptedModel(lambda heard: Call("nothing"))
    async with Harness(tmp_path, model).open() as harness:
        ended = await harness.say("Go")

        assert ended.outcome is Outcome.FAILED
        assert "kept calling tools" in ended.text
        assert len(model.requests) == 4


async def test_the_turn_limit_ends_with_a_summary_and_can_be_continued(tmp_path):
    def script(heard):
        return Say("Half is done.") if not model.requests[-1].use_tools else Call("look")

    model = ScriptedModel(script)
    async with Harness(tmp_path, model, (tool("look"),), limits=lambda: Limits(turns=3)).open() as harness:
        ended = await harness.say("Go")

        assert ended.outcome is Outcome.LIMIT
        assert ended.text.startswith("Half is done.")
        assert "`agent.max_turns`" in ended.text
        assert len(model.requests) == 4
        again = await harness.say("", resumes=True)
        assert again.turns == 4


async def test_the_time_limit_ends_a_run_that_hangs(tmp_path):
    limits = lambda: Limits(deadline=time.monotonic() + 0.1)  # noqa: E731 - a value made when it is asked for
    async with Harness(tmp_path, ScriptedModel([Hang()]), limits=limits).open() as harness:
        ended = await harness.say("Go")

        assert (ended.outcome, ended.reason) == (Outcome.LIMIT, "time limit")


class Poor(ScriptedModel):
    """A model whose second question no limit pays for."""

    async def ask(self, request):
        if self.requests:
            raise LimitReached("Stopped: the money limit was reached.", limit="money limit")
        async for item in super().ask(request):
            yield item


async def test_a_call_that_no_limit_pays_for_ends_the_run_and_it_can_be_continued(tmp_path):
    model = Poor(lambda heard: Call("look"))
    async with Harness(tmp_path, model, (tool("look"),)).open() as harness:
        ended = await harness.say("Go")

        assert (ended.outcome, ended.reason) == (Outcome.LIMIT, "money limit")
        assert len(model.requests) == 1
        model.requests.clear()
        assert (await harness.say("", resumes=True)).reason == "money limit"
        assert len(model.requests) == 1


async def test_stop_ends_a_model_that_hangs(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Answer(pieces=(Say("Beginning "),)), Hang()])).open() as harness:
        await harness.say("One")
        after = (await harness.log())[-1].number
        await harness.tell("Two")
        await harness.until(MessageTaken, after)
        began = time.monotonic()
        await harness.hermes.stop(harness.session)

        ended = await harness.ended(after)
        assert (ended.outcome, ended.text) == (Outcome.STOPPED, "Stopped.")
        assert time.monotonic() - began < 2


async def test_stop_ends_a_tool_that_hangs_and_the_log_says_so(tmp_path):
    model = ScriptedModel([Call("wait"), Say("Never.")])
    async with Harness(tmp_path, model, (tool("wait", effect=Effect.WRITES, seconds=60),)).open() as harness:
        await harness.tell("Go")
        await harness.until(ToolStarted)
        await harness.hermes.stop(harness.session)

        assert (await harness.kinds())[-2:] == ["tool_ended", "run_ended"]
        assert "what it did is unknown" in (await harness.transcript())[-1]
        assert await harness.store.effects.open(harness.session) == []


async def test_a_message_during_a_run_is_read_at_the_next_turn(tmp_path):
    def script(heard):
        return Call("wait") if len(model.requests) == 1 else Say("I see.")

    model = ScriptedModel(script)
    async with Harness(tmp_path, model, (tool("wait", effect=Effect.EXEC, seconds=0.1),)).open() as harness:
        await harness.tell("Go")
        await harness.until(ToolStarted)
        await harness.tell("Also this")
        await harness.ended()

        assert await harness.transcript() == [
            "user: Go",
            "assistant: wait({})",
            "tool: ok",
            "user: Also this",
            "assistant: I see.",
        ]


async def test_a_queued_message_waits_for_the_reply(tmp_path):
    def script(heard):
        return Call("wait") if len(model.requests) == 1 else Say(f"Reply {len(model.requests)}.")

    model = ScriptedModel(script)
    async with Harness(tmp_path, model, (tool("wait", effect=Effect.EXEC, seconds=0.1),)).open() as harness:
        await harness.tell("Go")
        await harness.until(ToolStarted)
        await harness.tell("Later", busy=Busy.QUEUE)
        first = await harness.ended()
        second = await harness.ended((await harness.numbers("run_ended"))[0])

        assert (await harness.transcript())[-3:] == ["assistant: Reply 2.", "user: Later", "assistant: Reply 3."]
        assert (first.text, second.text) == ("Reply 2.", "Reply 3.")


async def test_an_interrupting_message_stops_the_run_and_is_answered(tmp_path):
    def script(heard):
        return Call("wait") if len(model.requests) == 1 else Say("Now this.")

    model = ScriptedModel(script)
    async with Harness(tmp_path, model, (tool("wait", effect=Effect.EXEC, seconds=60),)).open() as harness:
        await harness.tell("Go")
        await harness.until(ToolStarted)
        await harness.tell("No, this", busy=Busy.INTERRUPT)
        first = await harness.ended()
        second = await harness.ended((await harness.numbers("run_ended"))[0])

        assert (first.outcome, first.reason) == (Outcome.STOPPED, "interrupted by a new message")
        assert (second.outcome, second.text) == (Outcome.ANSWERED, "Now this.")


async def test_a_tool_may_ask_the_person(tmp_path):
    async def ask(_, context):
        return "You said " + await context.ask(Question(text="Which?", choices=("a", "b")))

    model = ScriptedModel([Call("ask"), Say("Done.")])
    async with Harness(tmp_path, model, (Piece("ask", ask, Effect.ASKS),)).open() as harness:
        await harness.tell("Go")
        asked = (await harness.until(Asked)).event
        await harness.tell("unrelated")
        await harness.tell("b", answers=asked.question)
        await harness.ended()

        assert asked.choices == ("a", "b")
        assert "tool: You said b" in await harness.transcript()
        assert "user: unrelated" in await harness.transcript()


async def test_two_calls_may_ask_at_once(tmp_path):
    async def ask(arguments, context):
        return await context.ask(Question(text=arguments["q"]))

    model = ScriptedModel([[Call("ask", {"q": "one?"}), Call("ask", {"q": "two?"})], Say("Done.")])
    async with Harness(tmp_path, model, (Piece("ask", ask),)).open() as harness:
        await harness.tell("Go")
        while [entry.event.kind for entry in await harness.log()].count("asked") < 2:
            await asyncio.sleep(0.005)
        questions = [entry.event for entry in await harness.log() if isinstance(entry.event, Asked)]
        for question in reversed(questions):
            await harness.tell(question.text.upper(), answers=question.question)
        await harness.ended()

        assert (await harness.transcript())[2:4] == ["tool: ONE?", "tool: TWO?"]


async def test_nobody_there_to_answer_is_an_answer_too(tmp_path):
    async def ask(_, context):
        return await context.ask(Question(text="Which?"))

    model = ScriptedModel([Call("ask"), Say("Done.")])
    async with Harness(tmp_path, model, (Piece("ask", ask),), attended=False).open() as harness:
        await harness.say("Go")

        assert json.loads((await harness.transcript())[2].removeprefix("tool: "))["kind"] == "refused"


@pytest.mark.parametrize("code", [401, 404, 500])
async def test_a_failing_model_is_a_visible_failure(tmp_path, code):
    async with Harness(tmp_path, ScriptedModel([Status(code, "broken")])).open() as harness:
        ended = await harness.say("Go")

        assert ended.outcome is Outcome.FAILED
        assert "broken" in ended.text
        assert (await harness.transcript()) == ["user: Go"]


async def test_after_a_failure_the_same_words_need_not_be_said_again(tmp_path):
    model = ScriptedModel([tries(Status(500, "broken"), Say("Here."))])
    async with Harness(tmp_path, model).open() as harness:
        await harness.say("Go")
        ended = await harness.say("", resumes=True)

        assert ended.text == "Here."
        assert await harness.transcript() == ["user: Go", "assistant: Here."]


async def test_the_usage_of_a_reply_is_in_the_log(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Say("Hello.")])).open() as harness:
        await harness.say("Hi")
        replied = next(entry.event for entry in await harness.log() if isinstance(entry.event, Replied))

        assert replied.usage.known
        assert replied.usage.output > 0
