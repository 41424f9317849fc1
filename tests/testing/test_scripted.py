"""The scripted model without a socket."""

from __future__ import annotations

import asyncio

import pytest

from hermes_agent.core.errors import (
    AuthRefused,
    EmptyReply,
    MalformedReply,
    Overloaded,
    ProviderError,
    RateLimited,
    ServerFailed,
    Stalled,
    TimedOut,
    Unreachable,
)
from hermes_agent.core.messages import (
    CallDelta,
    Delta,
    Message,
    ModelRequest,
    Origin,
    Prefix,
    Reply,
    Role,
    StopReason,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    said,
)
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say, Think
from hermes_agent.testing.clock import FakeClock
from hermes_agent.testing.faults import (
    BrokenToolJson,
    Empty,
    ErrorEvent,
    Hang,
    Html,
    KeepAlives,
    Malformed,
    Reset,
    Status,
    Truncate,
)
from hermes_agent.testing.scripted import ScriptedModel, tries

HELLO = (said("hello"),)
READ = Call("read_file", {"path": "a"})


def request(*messages: Message, deadline: float | None = None) -> ModelRequest:
    prefix = Prefix(system="Be brief.", tools=(), hash="h")
    return ModelRequest(
        call_id="c",
        session="s",
        run="r",
        turn=1,
        purpose="chat",
        prefix=prefix,
        messages=messages or HELLO,
        deadline=deadline,
    )


async def ask(model: ScriptedModel, *messages: Message) -> tuple[list[Delta], Reply]:
    *deltas, reply = [item async for item in model.ask(request(*messages))]
    assert isinstance(reply, Reply)
    return deltas, reply


async def test_deltas_come_first_and_then_one_reply():
    model = ScriptedModel([[Think("Hm."), Say("Reading."), READ]])
    deltas, reply = await ask(model)

    assert deltas == [ThinkingDelta(text="Hm."), TextDelta(text="Reading."), CallDelta(name="read_file")]
    assert reply.stop is StopReason.TOOL_CALLS
    assert reply.message.tool_calls == (ToolCall(id="call_0000_2", name="read_file", arguments={"path": "a"}),)


async def test_the_conversation_decides_which_step_comes():
    model = ScriptedModel([READ, Say("It says hello.")])
    _, first = await ask(model)
    result = ToolResult(call_id="call_0000_0", name="read_file", parts=(Text(text="hello", origin=Origin.TOOL),))
    _, second = await ask(model, *HELLO, first.message, Message(role=Role.TOOL, parts=(result,)))
    _, again = await ask(model)

    assert second.message.text == "It says hello."
    assert again == first


async def test_past_its_end_a_script_says_so():
    _, reply = await ask(ScriptedModel([]))

    assert reply.message.text == "The script is over."


async def test_a_function_may_decide_by_all_that_it_heard():
    def script(heard: Heard) -> Say:
        return Say(f"{heard.system} {heard.last.text} {heard.turn}")

    _, reply = await ask(ScriptedModel(script))

    assert reply.message.text == "Be brief. hello 0"


async def test_a_second_try_gets_the_next_answer():
    model = ScriptedModel([tries(Status(429, headers={"retry-after": "3"}), Say("Yes."))])
    with pytest.raises(RateLimited) as caught:
        await ask(model)
    _, reply = await ask(model)

    assert (caught.value.retry_after, caught.value.status, reply.message.text) == (3.0, 429, "Yes.")
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Status(401), AuthRefused),
        (Status(500), ServerFailed),
        (Status(529), Overloaded),
        (Html(), MalformedReply),
        (Reset(), Unreachable),
        (Truncate(), Unreachable),
        (Malformed(), MalformedReply),
        (ErrorEvent(), Overloaded),
        (KeepAlives(), Stalled),
        (Empty(), EmptyReply),
    ],
)
async def test_a_fault_is_the_error_that_a_route_would_raise(fault, error):
    with pytest.raises(error):
        await ask(ScriptedModel([fault]))


async def test_words_before_a_fault_are_kept_as_partial():
    model = ScriptedModel([Reset(reply=Answer(pieces=(Say("one two three"),), pace=Pace(characters=4)), after=3)])
    with pytest.raises(ProviderError) as caught:
        await ask(model)

    assert caught.value.partial == "one two "


async def test_a_hanging_model_ends_at_its_deadline():
    clock = FakeClock(auto=True)
    with pytest.raises(TimedOut):
        _ = [item async for item in ScriptedModel([Hang()], clock=clock).ask(request(deadline=30.0))]

    assert clock.monotonic() == 30.0


async def test_a_hanging_model_can_be_cancelled():
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await ask(ScriptedModel([Hang()]))


async def test_broken_tool_json_is_kept_beside_empty_arguments():
    _, reply = await ask(ScriptedModel([BrokenToolJson("read_file", '{"path')]))

    call = reply.message.tool_calls[0]
    assert (call.arguments, call.broken) == ({}, '{"path')


async def test_delays_are_taken_from_the_clock():
    clock = FakeClock(auto=True)
    model = ScriptedModel([Say("abcdefgh")], pace=Pace(first=1.0, between=0.5, characters=4), clock=clock)
    await ask(model)

    assert clock.monotonic() == 2.0


async def test_a_repeated_beginning_counts_as_cached():
    model = ScriptedModel([Say("Yes.")])
    long = said("word " * 1000)
    _, first = await ask(model, long)
    _, again = await ask(model, long)

    assert (first.usage.cached, again.usage.cached > 1000) == (0, True)
