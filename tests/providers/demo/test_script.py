"""The words of scripts."""

from __future__ import annotations

from hypothesis import given, strategies as st

from hermes_agent.core.messages import Message, Role, StopReason, Usage, said
from hermes_agent.providers.demo.script import Answer, Call, Heard, PrefixCache, Say, Think, call_id, chunks, count


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


def test_tokens_are_bytes_by_four():
    answer = Answer(pieces=(Think("x" * 40), Say("x" * 80), Call("abcd", raw="{}{}")))
    usage = count(answer, "x" * 400, cached=64)

    assert usage == Usage(input=100, output=10 + 20 + 2, cached=64, reasoning=10)


def test_an_answer_may_bring_its_own_usage():
    assert count(Answer(usage=Usage(input=7)), "x", cached=0) == Usage(input=7)


def test_only_whole_steps_of_a_common_beginning_are_cached():
    cache = PrefixCache(step=10)
    cache.shared("a" * 100)

    assert cache.shared("a" * 100 + "b" * 50) == 20
    assert cache.shared("a" * 90 + "c") == 20
    assert cache.shared("d") == 0


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_the_common_beginning_is_found_wherever_it_ends(start: str, one: str, other: str):
    cache = PrefixCache(step=1)
    cache.shared(start + one)
    same = next((n for n, (a, b) in enumerate(zip(start + one, start + other, strict=False)) if a != b), None)
    length = min(len(start + one), len(start + other)) if same is None else same

    assert cache.shared(start + other) == -(-len((start + other)[:length].encode()) // 4)
