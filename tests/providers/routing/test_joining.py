"""A text in two halves is one text, with nothing said twice."""

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.errors import Unreachable
from hermes_agent.core.messages import (
    CallDelta,
    Message,
    ModelRequest,
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
    Usage,
    said,
)
from hermes_agent.providers.routing.joining import LEAST_WORDS, Continuation, Draft, going_on, joined, worth_keeping

WORDS = "The quick brown fox jumps over the lazy dog, and nobody minds at all what it does there."
REQUEST = ModelRequest(
    call_id="c",
    session="s",
    run="r",
    turn=1,
    purpose="chat",
    prefix=Prefix(system="", tools=(), hash=""),
    messages=[said("Hi")],
)


def through(seam: Continuation, text: str, size: int = 3) -> str:
    pieces = [seam.feed(text[start : start + size]) for start in range(0, len(text), size)]
    return "".join(pieces) + seam.finish()


def reply(*parts: Text | Thinking | ToolCall) -> Reply:
    message = Message(role=Role.ASSISTANT, parts=parts)
    return Reply(message=message, stop=StopReason.END, usage=Usage(), provider="p", model="m")


@given(st.integers(0, len(WORDS)), st.integers(1, 40), st.booleans())
def test_the_rest_of_a_text_follows_it_wherever_it_broke(cut, size, exact):
    assert WORDS[:cut] + through(Continuation(WORDS[:cut], exact=exact), WORDS[cut:], size) == WORDS


@given(st.integers(LEAST_WORDS, len(WORDS) - 1), st.integers(6, 20), st.integers(1, 40))
def test_last_words_that_are_said_again_are_left_out(cut, again, size):
    assert WORDS[:cut] + through(Continuation(WORDS[:cut], exact=False), WORDS[cut - again :], size) == WORDS


@given(st.integers(LEAST_WORDS, len(WORDS) - 1), st.integers(1, 40))
def test_a_text_that_begins_anew_goes_on_where_it_broke(cut, size):
    assert WORDS[:cut] + through(Continuation(WORDS[:cut], exact=False), WORDS, size) == WORDS


def test_a_blank_that_is_there_is_not_said_twice():
    assert through(Continuation("one two ", exact=True), " three") == "three"
    assert through(Continuation("one two", exact=True), " three") == " three"


def test_words_wait_only_until_it_is_known_what_repeats():
    seam = Continuation(WORDS, exact=False)
    assert seam.feed(" And") == ""
    assert seam.feed(" so it went on, for a long while and through many words that nobody had ever heard.") != ""
    assert seam.feed(" More.") == " More."


@pytest.mark.parametrize(
    ("words", "kept"), [("", False), ("  a few words   ", False), ("enough words to be kept", True)]
)
def test_a_few_words_are_not_worth_a_continuation(words, kept):
    assert worth_keeping(words) is kept


def test_a_model_that_takes_a_beginning_gets_it_without_its_last_blanks():
    request = going_on(REQUEST, "Half of it ", prefill=True)
    assert request.prefill
    assert [message.text for message in request.messages] == ["Hi", "Half of it"]
    assert len(REQUEST.messages) == 1


def test_another_model_is_asked_in_words_by_the_runtime():
    request = going_on(REQUEST, "Half of it", prefill=False)
    assert not request.prefill
    assert "«Half of it»" in request.messages[-1].text
    assert request.messages[-1].parts[0].origin is Origin.RUNTIME


def test_the_joined_reply_keeps_its_thoughts_and_calls():
    thought, call = Thinking(text="hm"), ToolCall(id="1", name="t", arguments={})
    whole = joined("One, ", reply(thought, Text(text="two"), call), exact=True)
    assert whole.message.parts == (thought, Text(text="One, two"), call)
    assert joined("One.", reply(call), exact=True).message.parts == (Text(text="One."), call)


def test_a_draft_goes_on_from_all_words_so_far():
    draft = Draft()
    draft.begin(exact=False)
    draft.hear([ThinkingDelta(text="hm"), TextDelta(text=WORDS[:30])])
    assert draft.broke()
    draft.begin(exact=True)
    assert draft.hear([TextDelta(text=WORDS[30:40])]) == [TextDelta(text=WORDS[30:40])]
    assert draft.broke()
    assert draft.words == WORDS[:40]
    draft.begin(exact=True)
    draft.hear([TextDelta(text=WORDS[40:])])
    (whole,) = draft.end(reply(Text(text=WORDS[40:])))
    assert whole.message.text == WORDS


def test_words_that_waited_when_an_attempt_broke_are_shown_before_the_next():
    draft = Draft(words=WORDS[:30])
    draft.begin(exact=False)
    shown = list(draft.hear([TextDelta(text=WORDS[30:45])]))
    assert draft.broke()
    shown += draft.held_back()
    assert shown == [TextDelta(text=WORDS[30:45])]
    assert draft.words == WORDS[:45]
    assert draft.held_back() == ()


def test_an_attempt_that_brought_nothing_keeps_the_words_before_it():
    draft = Draft(words=WORDS)
    draft.begin(exact=False)
    assert draft.broke()
    assert draft.words == WORDS


def test_a_call_that_had_begun_voids_the_words():
    draft = Draft()
    draft.begin(exact=False)
    draft.hear([TextDelta(text=WORDS), CallDelta(name="t")])
    assert not draft.broke()
    assert draft.words == ""


def test_an_error_knows_the_words_before_it():
    assert Unreachable("x", partial="words").partial == "words"
