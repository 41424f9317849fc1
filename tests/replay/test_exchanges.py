"""Model exchanges and tool calls on a tape: recorded as they come, given back in their order."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes_agent.agent.agent import Proposed
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import Overloaded, RequestDiffers, ToolError, UnknownTool
from hermes_agent.core.messages import Reply, TextDelta, ToolCall, said
from hermes_agent.core.tool import Answer, Question
from hermes_agent.providers.demo.script import Say
from hermes_agent.replay.cassette import Questions
from hermes_agent.replay.lines import Answered, Asked
from hermes_agent.replay.recorded_calls import RecordedCalls, call_of
from hermes_agent.replay.recorder import RecordedModel, Recorder
from hermes_agent.replay.replayed import (
    LiveFrom,
    NearestCalls,
    NearestModel,
    NotRecorded,
    StrictCalls,
    StrictModel,
)
from hermes_agent.replay.tracks import RecordedGate, ReplayedGate
from hermes_agent.testing.faults import Status
from hermes_agent.testing.scripted import ScriptedModel
from hermes_agent.tools.schema import from_function
from tests.replay.tapes import SESSION, Book, Box, Context, model_of, over, player, recorder, request


async def collect(model, asked):
    return [item async for item in model.ask(asked)]


async def answers(made, live=None):
    async def real(_ledger):
        return live

    return await made.model(SESSION, "", Book(), real)


async def test_a_replay_gives_the_same_deltas_and_reply(tmp_path: Path) -> None:
    tape = recorder(tmp_path)
    model = await model_of(tape, ScriptedModel([Say("Good day to you, and a long answer.")]))
    then = await collect(model, request("Hi"))
    over(tape)

    again = await answers(await player(tmp_path))

    assert isinstance(model, RecordedModel)
    assert isinstance(again, StrictModel)
    assert await collect(again, request("Hi")) == then
    assert (again.name, again.window) == (model.name, model.window)
    assert isinstance(then[0], TextDelta) and isinstance(then[-1], Reply)


async def test_an_error_is_raised_again(tmp_path: Path) -> None:
    tape = recorder(tmp_path)
    with pytest.raises(Overloaded):
        await collect(await model_of(tape, ScriptedModel([Status(529, "busy")])), request("Hi"))
    over(tape)

    with pytest.raises(Overloaded, match="busy"):
        await collect(await answers(await player(tmp_path)), request("Hi"))


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (request("Ho"), "message 1 at character 2: recorded 'Hi', now 'Ho'"),
        (request("Hi", "there"), "the number of messages: 1 were recorded, now there are 2"),
        (request("Hi", effort="high"), "`effort`: recorded medium, now high"),
        (request("Hi", purpose="title"), "no such thing"),
    ],
)
async def test_the_first_difference_is_named(tmp_path: Path, now, what: str) -> None:
    tape = recorder(tmp_path)
    await collect(await model_of(tape, ScriptedModel([Say("Yes.")])), request("Hi"))
    over(tape)

    with pytest.raises(RequestDiffers) as error:
        await collect(await answers(await player(tmp_path)), now)

    assert what in str(error.value)


async def test_the_nearest_question_is_the_one_that_shares_most(tmp_path: Path) -> None:
    tape = recorder(tmp_path)
    model = await model_of(tape, ScriptedModel(lambda heard: Say(heard.last.text.upper())))
    for words in ("paint the wall", "count the apples", "sing"):
        await collect(model, request(words))
    over(tape)

    again = await answers(await player(tmp_path, nearest=True))

    assert isinstance(again, NearestModel)
    assert (await collect(again, request("count all the apples")))[-1].message.text == "COUNT THE APPLES"
    with pytest.raises(RequestDiffers, match="`title`"):
        await collect(again, request("x", purpose="title"))


async def test_likeness_is_one_for_the_same_and_less_for_others(tmp_path: Path) -> None:
    tape = recorder(tmp_path)
    await collect(await model_of(tape, ScriptedModel([Say("Yes.")])), request("Hi", "you"))
    over(tape)
    cassette = (await player(tmp_path)).cassette
    asked, questions = cassette.steps[0][0], Questions(cassette, str)

    same, near, far = (questions.likeness(request(*words), asked) for words in (["Hi", "you"], ["Hi", "You"], ["zzz"]))

    assert same == 1.0 > near > far
    assert questions.likeness(request(), asked) == 0.0


async def test_from_a_step_on_the_live_model_answers_for_good(tmp_path: Path) -> None:
    tape = recorder(tmp_path)
    model = await model_of(tape, ScriptedModel([Say("One."), Say("Two.")]))
    await collect(model, request("Hi"))
    await collect(model, request("Hi"))
    over(tape)

    live = ScriptedModel(lambda _heard: Say("Live."))
    again = await answers(await player(tmp_path, live_from=2), live)
    said_now = [(await collect(again, request("Hi")))[-1].message.text for _ in range(3)]

    assert isinstance(again, LiveFrom)
    assert said_now == ["One.", "Live.", "Live."]
    assert (again.is_live, again.name, again.window, len(live.requests)) == (True, live.name, live.window, 2)


def tool_of(name: str, function) -> object:
    return from_function(name, function, "For tests.", (), effect=Effect.READS)


async def recorded_call(tape: Recorder, box: Box, name: str, arguments: dict[str, str], call: str) -> Answer:
    """What the loop does with a call, by hand."""
    calls = RecordedCalls(tape.track(SESSION))
    tool, meant = calls.toolbox(box).resolve(name, arguments)
    tool.facts(meant, "/w")
    calls.came("may_run", call)
    answer = await tool.run(meant, Context(call))
    calls.ends(call, name, meant, answer)
    return answer


async def test_a_call_gets_its_recorded_result_with_its_questions_and_progress(tmp_path: Path) -> None:
    async def paint(colour: str, context) -> str:
        context.progress("mixing")
        await context.use("look", {"place": "here"})
        return f"{colour}: {await context.ask(Question(text='Sure?'))}"

    tape = recorder(tmp_path)
    then = await recorded_call(tape, Box(tool_of("paint", paint)), "paint", {"colour": "red"}, "k1")
    over(tape)

    made = await player(tmp_path, driven=True)
    calls = made.calls(SESSION)
    tool, meant = made.toolbox(calls.result, Box()).resolve("paint", {"colour": "red"})
    context = Context("k1")
    facts = tool.facts(meant, "/w")
    proposed = Proposed(
        call=ToolCall(id="k1", name="paint", arguments=meant), tool=tool, arguments=meant, facts=facts, context=context
    )
    await calls.before_call(proposed)
    now = await calls.after_call(proposed, await tool.run(meant, context))

    assert isinstance(calls, StrictCalls)
    assert now == then
    assert (facts.effect, context.asked, context.shown) == (Effect.READS, ["Sure?"], ["mixing"])
    assert context.used == [("look", {"place": "here"})]
    assert call_of(context) == "k1"


async def test_a_call_that_cannot_be_made_is_none_in_the_replay_either(tmp_path: Path) -> None:
    tape = recorder(tmp_path)
    with pytest.raises(UnknownTool):
        RecordedCalls(tape.track(SESSION)).toolbox(Box()).resolve("paint", {})
    over(tape)

    made = await player(tmp_path)
    box = made.toolbox(made.calls(SESSION).result, Box())
    with pytest.raises(UnknownTool, match="no tool `paint`"):
        box.resolve("paint", {})[0].facts({}, "/w")
    with pytest.raises(UnknownTool, match="no tool `other`"):
        box.resolve("other", {})


async def test_the_nearest_call_of_the_same_tool_stands_for_one_that_was_not_recorded(tmp_path: Path) -> None:
    async def look(place: str) -> str:
        return f"seen {place}"

    tape = recorder(tmp_path)
    for call, where in (("k1", "the garden behind the house"), ("k2", "nowhere")):
        await recorded_call(tape, Box(tool_of("look", look)), "look", {"place": where}, call)
    over(tape)
    calls = NearestCalls((await player(tmp_path)).cassette)

    found = await calls.result("look", {"place": "the garden behind this house"}, Context("x"))

    assert found.parts[0].text == "seen the garden behind the house"
    with pytest.raises(NotRecorded):
        await calls.result("look", {"place": "the garden behind this house"}, Context("x"))
    with pytest.raises(ToolError):
        await calls.result("paint", {}, Context("x"))


async def test_mail_is_found_where_it_was_found(tmp_path: Path) -> None:
    tape = recorder(tmp_path)
    RecordedGate(tape.track(SESSION)).found(["m1"])
    over(tape)
    made = await player(tmp_path, driven=True)
    gate = ReplayedGate(made.track(SESSION))

    await gate.ready()

    assert gate.may_have(False)
    assert await gate.accepted() == frozenset({"m1"})
    assert not gate.may_have(True)
    assert await gate.accepted() == frozenset()


async def test_what_comes_too_early_waits_for_its_turn(tmp_path: Path) -> None:
    tape = recorder(tmp_path)
    model = await model_of(tape, ScriptedModel([Say("Yes.")]))
    await collect(model, request(messages=[said("Hi")]))
    over(tape)
    track = (await player(tmp_path)).track(SESSION)

    async with asyncio.TaskGroup() as group:
        late = group.create_task(track.turn(Answered, lambda _line: True, "an answer"))
        await asyncio.sleep(0)
        assert not late.done()
        asked = await track.turn(Asked, lambda _line: True, "a question")
    assert late.result().n == asked.n
    assert track.clock.now() == late.result().at
