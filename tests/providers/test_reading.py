"""Blocks grow piece by piece and become parts."""

from hermes_agent.core.messages import Text, Thinking, ToolCall
from hermes_agent.core.model import CallDelta, TextDelta, ThinkingDelta
from hermes_agent.providers.dialect import Dialect
from hermes_agent.providers.dialects.openai_chat import DIALECT
from hermes_agent.providers.pieces import CallIds
from hermes_agent.providers.reading import Block
from tests.providers.asking import route_to

MAKER = "vendor/model"


def grown(block: Block, *pieces: str):
    shown = [delta for piece in pieces for delta in block.grow(piece)]
    return block.part(MAKER, CallIds(set())), shown


def test_words_and_thoughts_are_shown_as_they_come():
    assert grown(Block("text"), "a", "", "b") == (Text(text="ab"), [TextDelta(text="a"), TextDelta(text="b")])
    thought = Thinking(text="hm", opaque="sig", maker=MAKER)
    assert grown(Block("thinking", opaque="sig"), "hm") == (thought, [ThinkingDelta(text="hm")])


def test_arguments_are_not_shown_and_are_whole_in_the_call():
    call = ToolCall(id="a", name="f", arguments={"x": 1})
    assert grown(Block("call", id="a", name="f"), '{"x"', ":1}") == (call, [])


def test_a_block_with_nothing_in_it_is_no_part():
    assert grown(Block("text")) == grown(Block("thinking")) == grown(Block(""), "what") == (None, [])


def test_hidden_thinking_is_a_part_without_words():
    hidden = Thinking(text="", opaque="x", maker=MAKER, redacted=True)
    assert grown(Block("thinking", opaque="x", redacted=True))[0] == hidden


def read(dialect: Dialect, *events: bytes, names: dict[str, str]):
    decoder = dialect.decoder(route_to("openai/gpt-5.2"), set(), names)
    shown = [delta for event in events for delta in decoder.feed(event)]
    return shown, decoder.finish().parts


def test_a_tool_that_the_wire_calls_otherwise_has_its_own_name_again():
    call = (
        b'{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look_up","arguments":"{}"}}]}}]}'
    )
    end = b'{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}'

    shown, parts = read(DIALECT, call, end, b"[DONE]", names={"look_up": "look.up"})

    assert shown == [CallDelta(name="look.up")]
    assert parts == (ToolCall(id="a", name="look.up", arguments={}),)
