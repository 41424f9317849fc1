"""A chain over real servers: who answers, with which key, why, and until when."""

from dataclasses import replace

import pytest

from hermes_agent.core.errors import AuthRefused, ContextTooLong, ProviderError, ServerFailed
from hermes_agent.core.messages import (
    Continuing,
    Image,
    Message,
    Role,
    Text,
    TextDelta,
    ToolCall,
    ToolResult,
    ToolSchema,
)
from hermes_agent.providers.catalog import known_models
from hermes_agent.providers.demo.script import Answer, Call, Pace, Say
from hermes_agent.providers.settings import ModelOverride, ModelSettings
from hermes_agent.testing.faults import Empty, Reset, Status, Truncate
from tests.doubles.model_servers import anthropic_model, bedrock_model
from tests.providers.asking import DIALECTS, PIXEL, PREFIX, Spoken, chained, in_turn, remarks, talking

BUSY = Status(503)
HAIKU = Spoken(name="anthropic", model="anthropic/claude-haiku-4-5", serve=anthropic_model)
# Every model whose thinking is adaptive and that came before there was `xhigh`.
BEFORE_XHIGH = [
    Spoken(name="claude", model=name, serve=bedrock_model if name.startswith("bedrock") else anthropic_model)
    for name, facts in known_models().items()
    if facts.thinking == "adaptive" and "xhigh" not in facts.efforts
]
LONG = "This is the whole of a reply that is long enough to be broken off and gone on with."


async def test_the_next_model_answers_and_says_for_whom_and_why():
    async with chained(lambda _: BUSY, [Say("I am here.")]) as talk:
        heard = await talk.listen()
    assert heard[-1].message.text == "I am here."
    assert (heard[-1].provider, heard[-1].model) == ("anthropic", "claude-opus-5-5")
    (said,) = remarks(heard)
    assert said.startswith("Answered by anthropic/claude-opus-5-5, because openai/gpt-5.2 at 127.0.0.1")
    assert "503" in said
    assert len(talk.servers[0].exchanges) == 2
    assert [row.credential for row in talk.book.opened] == ["KEY", "KEY", "KEY"]


async def test_the_first_model_rests_and_is_asked_again_after_its_rest():
    async with chained(in_turn(BUSY, BUSY, Say("Back.")), lambda _: Say("For now.")) as talk:
        await talk.ask()
        second = await talk.listen()
        talk.clock.ahead = 61.0
        third = await talk.listen()
    assert (second[-1].provider, third[-1].provider) == ("anthropic", "openai")
    assert remarks(second) == []
    assert remarks(third) == ["openai/gpt-5.2 answers again."]
    assert len(talk.servers[0].exchanges) == 3


async def test_what_rests_is_known_to_the_next_run_and_named():
    async with chained(lambda _: BUSY, lambda _: Say("For now.")) as talk, chained([Say("x")], [Say("y")]) as later:
        await talk.ask()
        await later.cool_downs.rest(await talk.cool_downs.resting(talk.clock.now()))
        (said,) = remarks(await later.listen())
    assert "openai/gpt-5.2 is paused for another" in said
    assert "(Overloaded)" in said


async def test_a_refused_key_gives_way_to_the_next_one_of_the_same_provider():
    async with chained([Say("Hi.")], [Say("Never.")], keys={"OLD": "bad", "NEW": "good"}) as talk:
        heard = await talk.listen()
        await talk.listen()
    assert heard[-1].provider == "openai"
    assert [row.credential for row in talk.book.opened] == ["OLD", "NEW", "NEW"]
    assert [(rest.credential, rest.reason) for rest in talk.cool_downs.kept.values()] == [("OLD", "AuthRefused")]
    assert talk.servers[1].exchanges == []


async def test_another_value_under_the_name_of_a_resting_key_does_not_rest():
    async with chained([Say("Hi.")], keys={"A": "bad", "B": "good"}) as talk:
        await talk.ask()
        kept = list(talk.cool_downs.kept.values())
    async with chained([Say("Hi.")], keys={"A": "good", "B": "bad"}) as mended:
        await mended.cool_downs.rest(kept)
        await mended.ask()
    assert [row.credential for row in mended.book.opened] == ["A"]


async def test_where_every_key_is_refused_the_error_names_the_last_one_and_shows_none():
    async with chained([Say("Hi.")], keys={"OLD": "bad-key-1", "OLDER": "bad-key-2"}) as talk:
        with pytest.raises(AuthRefused) as caught:
            await talk.ask()
    assert caught.value.credential == "OLDER"
    assert "(OLDER)" in str(caught.value)
    assert "bad-key" not in str(caught.value)
    assert caught.value.__notes__ == ["no other key of this provider can be used now"]


async def test_a_failing_fallback_leaves_the_keys_of_the_first_model_alone():
    async with chained(lambda _: BUSY, lambda _: Status(401)) as talk:
        with pytest.raises(ProviderError):
            await talk.ask()
    rests = talk.cool_downs.kept.values()
    assert {(rest.provider, rest.credential, rest.model) for rest in rests} == {
        ("openai", "", "gpt-5.2"),
        ("anthropic", "KEY", ""),
    }


async def test_a_text_that_broke_off_is_gone_on_with_by_the_next_model():
    broken = Reset(reply=Answer(pieces=(Say(LONG),), pace=Pace(characters=10, between=0.003)), after=5)
    async with chained(lambda _: broken, lambda _: Say(LONG), settings=ModelSettings(max_retries=0)) as talk:
        heard = await talk.listen()
    assert [type(item) for item in heard if isinstance(item, Continuing)] == [Continuing]
    assert "".join(item.text for item in heard if isinstance(item, TextDelta)) == heard[-1].message.text == LONG


async def test_a_model_that_takes_a_beginning_goes_on_from_it_without_thinking():
    broken = Reset(reply=Answer(pieces=(Say(LONG),), pace=Pace(characters=10, between=0.003)), after=6)
    async with talking(HAIKU, in_turn(broken, lambda heard: Say(LONG[len(heard.messages[-1].text) :]))) as talk:
        heard = await talk.listen()
    body = talk.server.exchanges[-1].body
    assert body["messages"][-1]["role"] == "assistant"
    assert "thinking" not in body
    assert "".join(item.text for item in heard if isinstance(item, TextDelta)) == heard[-1].message.text == LONG


async def test_a_model_that_has_nothing_to_add_to_its_beginning_had_said_all():
    broken = Truncate(reply=Answer(pieces=(Say(LONG),), pace=Pace(characters=10, between=0.003)), after=8)
    async with talking(HAIKU, in_turn(broken, Empty())) as talk:
        reply = await talk.ask()
    assert LONG.startswith(reply.message.text)
    assert len(reply.message.text) >= 30
    assert not reply.usage.known
    assert len(talk.server.exchanges) == 3


async def test_a_beginning_that_is_refused_is_asked_for_in_words():
    broken = Reset(reply=Answer(pieces=(Say(LONG),), pace=Pace(characters=10, between=0.003)), after=6)
    refusal = Status(400, "This model does not support assistant message prefill.")
    async with talking(HAIKU, in_turn(broken, refusal, Say(LONG))) as talk:
        heard = await talk.listen()
    assert [exchange.body["messages"][-1]["role"] for exchange in talk.server.exchanges] == [
        "user",
        "assistant",
        "user",
    ]
    assert heard[-1].message.text == LONG


async def test_a_conversation_that_is_too_long_is_sent_smaller_and_stays_so():
    def script(heard):
        size = sum(len(str(part)) for message in heard.messages for part in message.parts)
        return Status(400, "prompt is too long") if size > 35_000 else Say("Fits.")

    async with talking(DIALECTS[0], script) as talk:
        _long_talk(talk)
        reply = await talk.ask()
        talk.say("More?")
        await talk.ask()
    assert reply.message.text == "Fits."
    assert [exchange.status for exchange in talk.server.exchanges] == [400, 200, 200]
    assert "left out here" in talk.server.exchanges[-1].request.body.decode()
    assert "left out here" not in repr(talk.messages)


async def test_what_cannot_be_made_smaller_goes_to_a_model_with_a_larger_window_or_ends():
    async with talking(DIALECTS[0], lambda _: Status(400, "prompt is too long")) as talk:
        with pytest.raises(ContextTooLong):
            await talk.ask()
    assert len(talk.server.exchanges) == 1


async def test_who_shortens_the_conversation_itself_is_told_at_once():
    async with talking(DIALECTS[0], lambda _: Status(400, "prompt is too long")) as talk:
        _long_talk(talk)
        with pytest.raises(ContextTooLong):
            await talk.ask(shrink=False)
    assert len(talk.server.exchanges) == 1


def test_the_models_before_xhigh_are_looked_at():
    assert {"anthropic/claude-opus-4-6", "anthropic/claude-sonnet-4-6"} <= {each.model for each in BEFORE_XHIGH}


@pytest.mark.parametrize("spoken", BEFORE_XHIGH, ids=lambda each: each.model)
async def test_a_model_without_xhigh_is_asked_for_max_and_it_is_said(spoken: Spoken):
    async with talking(spoken, lambda _: Say("Hi")) as talk:
        heard = await talk.listen(effort="xhigh")
    assert remarks(heard) == [f"{spoken.model} has no reasoning level `xhigh`: `max` is asked for."]
    assert b'"effort":"max"' in talk.server.exchanges[0].request.body


async def test_a_model_that_is_not_in_the_catalogue_is_asked_as_the_one_before_and_it_is_said():
    async with talking(replace(HAIKU, model="anthropic/claude-opus-4-9"), lambda _: Say("Hi")) as talk:
        first, second = await talk.listen(effort="xhigh"), await talk.listen(effort="xhigh")
    (said,) = remarks(first)
    assert "it is treated like anthropic/claude-opus-4-8; its price is unknown." in said
    assert remarks(second) == []
    assert b'"effort":"xhigh"' in talk.server.exchanges[0].request.body
    assert talk.book.settled[0].cost is None


async def test_a_level_that_is_asked_of_nobody_is_told():
    async with talking(replace(HAIKU, model="anthropic/somebody-new"), lambda _: Say("Hi")) as talk:
        usual, high = await talk.listen(effort="medium"), await talk.listen(effort="high")
    assert remarks(usual) == []
    assert remarks(high) == ["anthropic/somebody-new has no reasoning levels that are known: `high` is not asked for."]


async def test_a_level_that_the_model_lacks_is_told_once_in_a_run():
    async with talking(DIALECTS[0], lambda _: Say("Hi")) as talk:
        first, second = await talk.listen(effort="max"), await talk.listen(effort="max")
        usual = await talk.listen(effort="medium")
    assert remarks(first) == ["openai/gpt-5.2 has no reasoning level `max`: `xhigh` is asked for."]
    assert remarks(second) == remarks(usual) == []


async def test_a_model_has_its_own_level_in_place_of_the_usual_one():
    models = {"openai/gpt-5.2": ModelOverride(reasoning_effort="high")}
    settings = ModelSettings(reasoning_effort="low")
    async with talking(DIALECTS[0], lambda _: Say("Hi"), models=models, settings=settings) as talk:
        heard = [remarks(await talk.listen(effort=effort)) for effort in ("low", "medium")]
    assert [each.effort for each in talk.server.asked] == ["high", "medium"]
    assert heard == [[], []]


async def test_what_the_model_cannot_take_is_told_once_in_a_run():
    models = {"openai/gpt-5.2": ModelOverride(window=32_768, images=False)}
    prefix = replace(
        PREFIX, tools=(*PREFIX.tools, ToolSchema(name="odd", description="", parameters={"type": "array"}))
    )
    async with talking(DIALECTS[0], lambda _: Say("Hi"), models=models) as talk:
        first = await talk.listen(prefix=prefix)
        talk.messages.append(Message(role=Role.USER, parts=(Image(data=PIXEL),)))
        second, third = await talk.listen(prefix=prefix), await talk.listen(prefix=prefix)
    assert remarks(first) == [
        "openai/gpt-5.2 has a window of 32,768 tokens, of which a reply may take 8,192.",
        "openai/gpt-5.2 is not offered the tool odd: its parameters are of the type `array` instead of an object.",
    ]
    assert remarks(second) == ["openai/gpt-5.2 sees no pictures. Hermes tells it in words that there is one."]
    assert remarks(third) == []


async def test_a_model_without_tools_is_told_where_tools_are_offered():
    models = {"openai/gpt-5.2": ModelOverride(tools=False)}
    async with talking(DIALECTS[0], lambda _: Say("Hi"), models=models) as talk:
        plain, offered = await talk.listen(prefix=replace(PREFIX, tools=())), await talk.listen()
    assert remarks(plain) == []
    assert remarks(offered) == ["openai/gpt-5.2 calls no tools: they are left out, and it answers with words alone."]


async def test_without_another_model_the_error_is_the_last_one():
    async with chained(lambda _: Status(500)) as talk:
        with pytest.raises(ServerFailed):
            await talk.ask()
    assert len(talk.servers[0].exchanges) == 2


def _long_talk(talk):
    talk.messages.clear()
    for number in range(12):
        talk.say(f"Read {number}.")
        call = Call("read_file", {"path": "a"})
        talk.messages.append(_called(call, f"id{number}"))
        talk.answer(ToolResult(call_id=f"id{number}", name="read_file", parts=(Text(text="word " * 1_000),)))
    talk.say("And now?")


def _called(call, call_id):
    return Message(role=Role.ASSISTANT, parts=(ToolCall(id=call_id, name=call.name, arguments=call.arguments),))
