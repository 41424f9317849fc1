"""The words of scripts."""

from __future__ import annotations

from hermes_agent.core.messages import Message, Role, said
from hermes_agent.core.model import StopReason
from hermes_agent.providers.demo.script import Answer, Call, Heard, Say, call_id, chunks


def test_the_pieces_say_why_the_model_stopped():
    assert Answer(pieces=(Say("x"),)).ending is StopReason.END
    assert Answer(pieces=(Say("x"), Call("a"))).ending is StopReason.TOOL_CALLS
    assert Answer(stop=StopReason.LENGTH).ending is StopReason.LENGTH


def test_an_id_depends_on_the_conversation_and_the_place_alone():
    spoke = Message(role=Role.ASSISTANT, parts=())
    one, two = Heard(model="m", messages=(said("a"),)), Heard(model="m", messages=(said("a"), spoke))

    assert call_id(Call("a"), one, 0) == call_id(Call("b"), one, 0)
    assert len({call_id(Call("a"), one, 0), call_id(Call("a"), one, 1), call_id(Call("a"), two, 0)}) == 3
    assert call_id(Call("a", id="mine"), one, 0) == "mine"


def test_raw_text_goes_over_the_wire_in_place_of_the_arguments():
    assert Call("a", {"x": "ä"}).json == '{"x": "ä"}'
    assert Call("a", {"x": 1}, raw="{broken").json == "{broken"


def test_chunks_lose_nothing():
    assert chunks("abcde", 2) == ["ab", "cd", "e"]
    assert chunks("ab", 0) == ["a", "b"]
    assert chunks("", 3) == []
