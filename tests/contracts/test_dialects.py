"""What every dialect does, over a real socket, with a server that refuses what the real one refuses."""

import pytest

from hermes_agent.core.messages import (
    CallDelta,
    Image,
    Message,
    Origin,
    Prefix,
    Reply,
    Role,
    StopReason,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolSchema,
    Usage,
    said,
)
from hermes_agent.host.late import late
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say, Think
from hermes_agent.providers.dialects import DIALECTS as TABLE
from hermes_agent.testing.faults import BrokenToolJson, DuplicateIds, Status
from tests.providers.asking import DIALECTS, PIXEL, READ, Spoken, result, route_to, talking

EVERY = pytest.mark.parametrize("spoken", DIALECTS, ids=lambda spoken: spoken.name)
# Where arguments are an object of the protocol's own, what is none never arrives.
TEXTUAL = pytest.mark.parametrize(
    "spoken", [spoken for spoken in DIALECTS if spoken.text_arguments], ids=lambda spoken: spoken.name
)
UNICODE = "Grüße, 世界! 👩‍👩‍👧‍👦 \u202e\u05e9\u05dc\u05d5\u05dd\u202c \x00 \ud7ff"


def test_every_dialect_is_under_this_contract():
    assert {spoken.name for spoken in DIALECTS} == set(TABLE)


@EVERY
async def test_words_arrive_as_they_are_written_and_whole_in_the_reply(spoken: Spoken):
    async with talking(spoken, [Answer(pieces=(Say(UNICODE * 3),), pace=Pace(characters=2))]) as talk:
        heard = await talk.listen()
    deltas = [item.text for item in heard if isinstance(item, TextDelta)]
    assert len(deltas) > 10
    assert "".join(deltas) == UNICODE * 3
    assert heard[-1].message == Message(role=Role.ASSISTANT, parts=(Text(text=UNICODE * 3, origin=Origin.MODEL),))
    assert (heard[-1].stop, f"{heard[-1].provider}/{heard[-1].model}") == (StopReason.END, spoken.model)


@EVERY
async def test_unicode_reaches_the_model_unchanged(spoken: Spoken):
    async with talking(spoken, [Say("ok")]) as talk:
        talk.messages[:] = [said(UNICODE)]
        await talk.ask()
    assert talk.server.asked[0].last.text == UNICODE


@EVERY
async def test_half_a_surrogate_pair_does_not_stop_the_request(spoken: Spoken):
    async with talking(spoken, [Say("ok")]) as talk:
        talk.messages[:] = [said("broken \ud83d name")]
        await talk.ask()
    assert talk.server.asked[0].last.text == "broken \ufffd name"


@EVERY
async def test_thinking_is_kept_apart_from_words_and_names_its_maker(spoken: Spoken):
    async with talking(spoken, [(Think("First, look."), Say("Done."))]) as talk:
        heard = await talk.listen()
    thought, words = heard[-1].message.parts
    assert "".join(item.text for item in heard if isinstance(item, ThinkingDelta)) == "First, look."
    assert isinstance(thought, Thinking)
    assert (thought.text, thought.maker, words) == ("First, look.", spoken.model, Text(text="Done."))


@EVERY
async def test_calls_of_one_turn_come_in_order_with_their_arguments(spoken: Spoken):
    calls = (
        Call("read_file", {"path": "a.txt"}),
        Call("write_file", {"path": "ü.txt", "deep": {"list": [1, None, 0.5]}}),
    )
    async with talking(spoken, [(Say("I look."), *calls)]) as talk:
        heard = await talk.listen()
    reply = heard[-1]
    assert [item.name for item in heard if isinstance(item, CallDelta)] == ["read_file", "write_file"]
    assert [(call.name, call.arguments, call.broken) for call in reply.message.tool_calls] == [
        (call.name, call.arguments, "") for call in calls
    ]
    assert reply.stop is StopReason.TOOL_CALLS


@EVERY
async def test_a_name_that_the_dialect_refuses_goes_out_as_another_and_comes_back_as_itself(spoken: Spoken):
    odd = ToolSchema(name="server.files/read 世界" * 9, description="Read.", parameters=READ.parameters)
    unfit = ToolSchema(name="broken", description="", parameters={"type": "string"})
    prefix = Prefix(system="Be careful.", tools=(READ, unfit, odd), hash="1")

    def script(heard: Heard) -> Call | Say:
        return Call(heard.tools[1].name, {"path": "a"}) if heard.turn == 0 else Say("Done.")

    async with talking(spoken, script) as talk:
        heard = await talk.listen(prefix=prefix)
        (call,) = heard[-1].message.tool_calls
        talk.answer(result(call.id, "text", name=call.name))
        await talk.ask(prefix=prefix)
        sent = [tool.name for tool in talk.server.asked[0].tools]
    assert [item.name for item in heard if isinstance(item, CallDelta)] == [call.name] == [odd.name]
    assert (len(sent), sent[0]) == (2, READ.name)


ODD_PARAMETERS = {
    "a reference": {"properties": {"p": {"$ref": "#/$defs/p"}}, "$defs": {"p": READ.parameters}},
    "a reference at the top": {"$ref": "#/$defs/p", "$defs": {"p": READ.parameters}},
    "what holds itself": {
        "properties": {"n": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}},
    },
    "a union at the top": {"anyOf": [READ.parameters, {"properties": {"url": {"type": "string"}}}]},
    "unions": {
        "properties": {"a": {"oneOf": [{"type": "string"}, {"type": "array"}]}, "b": {"type": ["integer", "null"]}}
    },
    "what may not be": {"type": "object", "properties": {"a": {}, "b": {}}, "not": {"required": ["a", "b"]}},
    "other properties": {"properties": {"a": {"type": "object", "additionalProperties": {"type": "number"}}}},
    "no other properties": {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
    "values": {"properties": {"a": {"enum": ["x", 1, None]}, "b": {"const": 2}}, "required": ["a"]},
    "lists of anything": {"properties": {"a": {"type": "array"}, "b": {"type": "array", "prefixItems": [{}]}}},
    "nothing": {},
}


@EVERY
async def test_tools_with_every_kind_of_parameters_are_offered_as_the_service_takes_them(spoken: Spoken):
    tools = [
        ToolSchema(name=f"t{number}", description="", parameters=parameters)
        for number, parameters in enumerate(ODD_PARAMETERS.values())
    ]
    async with talking(spoken, [Say("ok")]) as talk:
        await talk.ask(prefix=Prefix(system="Be careful.", tools=tuple(tools), hash="1"))
        sent = {tool.name: tool.parameters for tool in talk.server.asked[0].tools}
    assert list(sent) == [tool.name for tool in tools]
    assert {*sent["t0"]["properties"]} == {"p"}
    assert {*sent["t1"]["properties"]} == {"path"}
    assert {*sent["t3"]["properties"]} == {"path", "url"}
    assert {*sent["t4"]["properties"]} == {"a", "b"}


@EVERY
def test_what_doctor_judges_tools_by_is_what_requests_are_written_by(spoken: Spoken):
    dialect = late(TABLE[spoken.name])
    assert dialect.compiler(route_to(spoken.model)).rules == dialect.tools


@EVERY
async def test_results_reach_the_model_with_their_calls(spoken: Spoken):
    script = [(Call("read_file", {"path": "a"}), Call("read_file", {"path": "b"})), Say("Thanks.")]
    async with talking(spoken, script) as talk:
        first, second = (await talk.ask()).message.tool_calls
        talk.answer(result(first.id, "text of a"), result(second.id, "no such file", is_error=True))
        await talk.ask()
        heard = talk.server.asked[-1].messages
    results = [part for message in heard for part in message.parts if part.kind == "tool_result"]
    assert [entry.call_id for entry in results] == [first.id, second.id]
    assert results[0].text == "text of a"
    assert "no such file" in results[1].text
    assert results[1].is_error or results[1].text.startswith("Error")


@EVERY
async def test_pictures_reach_the_model_from_people_and_from_tools(spoken: Spoken):
    async with talking(spoken, [Call("read_file", {"path": "a.png"}), Say("A pixel.")]) as talk:
        picture = Image(data=PIXEL, media_type="image/png")
        talk.messages[:] = [Message(role=Role.USER, parts=(Text(text="See:", origin=Origin.OWNER), picture))]
        (call,) = (await talk.ask()).message.tool_calls
        talk.answer(result(call.id, "the picture", image=True))
        await talk.ask()
        body = talk.server.exchanges[-1].request.body.decode()
    assert body.count(PIXEL) == 2


@EVERY
async def test_usage_counts_cached_tokens_as_part_of_the_input(spoken: Spoken):
    written, thought = 100 * spoken.counts_writes, 20 * spoken.counts_thinking
    usage = Usage(input=1_000, output=50, cached=800, cache_write=written, reasoning=thought)
    async with talking(spoken, [Answer(pieces=(Think("hm"), Say("Hi.")), usage=usage)]) as talk:
        reply = await talk.ask()
    assert reply.usage == usage
    assert reply.cost is not None
    assert 0 < reply.cost < 0.01


@EVERY
@pytest.mark.parametrize("stop", [StopReason.END, StopReason.LENGTH, StopReason.REFUSED])
async def test_the_reason_for_stopping_is_named(spoken: Spoken, stop: StopReason):
    async with talking(spoken, [Answer(pieces=(Say("Half a sen"),), stop=stop)]) as talk:
        assert (await talk.ask()).stop is stop


@TEXTUAL
async def test_arguments_that_are_no_json_are_kept_as_they_came(spoken: Spoken):
    async with talking(spoken, [BrokenToolJson("read_file", '{"path": "a.t'), Say("Again.")]) as talk:
        (call,) = (await talk.ask()).message.tool_calls
        talk.answer(result(call.id, "bad arguments", is_error=True))
        await talk.ask()
    assert (call.arguments, call.broken) == ({}, '{"path": "a.t')


@TEXTUAL
async def test_a_stop_for_length_inside_a_call_leaves_a_broken_call(spoken: Spoken):
    cut = Answer(pieces=(Call("write_file", raw='{"path": "long'),), stop=StopReason.LENGTH)
    async with talking(spoken, [cut]) as talk:
        reply = await talk.ask()
    assert (reply.stop, reply.message.tool_calls[0].broken) == (StopReason.LENGTH, '{"path": "long')


@EVERY
async def test_two_calls_with_one_id_become_two_ids(spoken: Spoken):
    twins = DuplicateIds((Call("read_file", {"path": "a"}), Call("read_file", {"path": "b"})), id="call_same")
    async with talking(spoken, [twins, twins, Say("Done.")]) as talk:
        for _ in range(2):
            for call in (await talk.ask()).message.tool_calls:
                talk.answer(result(call.id, call.arguments["path"]))
        await talk.ask()
    ids = [call.id for message in talk.messages for call in message.tool_calls]
    assert len(set(ids)) == len(ids) == 4


@EVERY
async def test_forbidding_tools_still_sends_them(spoken: Spoken):
    async with talking(spoken, [Say("No tools."), Say("No tools.")]) as talk:
        await talk.ask()
        talk.say("And now?")
        await talk.ask(use_tools=False)
    first, second = talk.server.asked
    assert (first.use_tools, second.use_tools) == (True, not spoken.forbids)
    assert spoken.forbids or "No tool may be called now" in second.last.text
    assert [tool.name for tool in second.tools] == ["read_file", "write_file"]


@EVERY
async def test_the_prefix_is_byte_identical_in_every_request(spoken: Spoken):
    script = [(Think("hm"), Call("read_file", {"path": "a"})), Say("It says a."), Say("Yes."), Say("Bye.")]
    async with talking(spoken, script) as talk:
        (call,) = (await talk.ask()).message.tool_calls
        talk.answer(result(call.id, "a", image=True))
        await talk.ask(effort="high")
        talk.say("Sure?")
        await talk.ask(use_tools=False, max_output=100)
        talk.say("Bye")
        await talk.ask(effort="none")
        bodies = [exchange.request.body for exchange in talk.server.exchanges]
    prefixes = {body[: body.index(b"Hello")] for body in bodies}
    assert len(bodies) == 4
    assert len(prefixes) == 1
    assert b"careful assistant" in prefixes.pop()


@EVERY
async def test_a_second_request_finds_the_first_one_in_the_cache(spoken: Spoken):
    async with talking(spoken, [Say("One."), Say("Two."), Say("Three.")]) as talk:
        await talk.ask()
        for _ in range(2):
            talk.say("Go on.")
            reply = await talk.ask()
    assert reply.usage.cached > 0


@EVERY
async def test_a_conversation_goes_on_with_another_maker_s_thinking_left_out(spoken: Spoken):
    call = ToolCall(id="weird id/with:signs", name="read_file", arguments={"path": "a"})
    thought = Thinking(text="secret", opaque="c2ln", maker="elsewhere/model")
    async with talking(spoken, [Say("Fine.")]) as talk:
        talk.messages.append(Message(role=Role.ASSISTANT, parts=(thought, call)))
        talk.answer(result(call.id, "text"))
        assert isinstance(await talk.ask(), Reply)
        body = talk.server.exchanges[0].request.body
    assert b"secret" not in body
    assert b"weird id" not in body
    assert talk.messages[1].parts[0] is thought


@EVERY
async def test_thinking_that_its_maker_refuses_is_left_out_of_one_more_attempt(spoken: Spoken):
    def script(heard: Heard) -> Status | Say:
        thought = any(part.kind == "thinking" for message in heard.messages for part in message.parts)
        return Status(400, "messages.1.content.0: Invalid `signature` in `thinking` block") if thought else Say("Ok.")

    thought = Thinking(text="hm", opaque=spoken.opaque, maker=spoken.model)
    async with talking(spoken, script) as talk:
        talk.messages.append(Message(role=Role.ASSISTANT, parts=(thought, Text(text="Well."))))
        talk.say("And?")
        assert (await talk.ask()).message.text == "Ok."
        talk.say("More?")
        assert (await talk.ask()).message.text == "Ok."
        bodies = [exchange.request.body for exchange in talk.server.exchanges]
    assert len(bodies) <= 3
    assert not any(b"c2ln" in body for body in bodies[-2:])
    assert talk.messages[1].parts[0] is thought


@EVERY
async def test_a_history_that_breaks_every_rule_is_still_a_request(spoken: Spoken):
    opened = ToolCall(id="never", name="read_file", arguments={})
    async with talking(spoken, lambda _: Say("Fine.")) as talk:
        talk.messages[:] = [
            Message(role=Role.ASSISTANT, parts=(Text(text="I begin."),)),
            Message(role=Role.USER, parts=(Text(text="  "),)),
            said("One."),
            said("Two."),
            Message(role=Role.ASSISTANT, parts=(Text(text=""), opened)),
            said("Steered away."),
            Message(role=Role.TOOL, parts=(result("nobody's", "lost"),)),
            Message(role=Role.ASSISTANT, parts=(Text(text="Half a"),)),
        ]
        reply = await talk.ask()
    assert reply.message.text == "Fine."
