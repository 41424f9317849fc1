"""The note: what its writer is shown, how it is recognised again, what is quoted without a model."""

import pytest
from hypothesis import given, strategies as st

from hermes_agent.agent.compaction.shorten import asked, clipped, earlier, portions, quoted, shown, trimmed
from hermes_agent.core.messages import File, Image, Message, Origin, Role, Text, Thinking, ToolCall, ToolResult, said
from hermes_agent.core.section import estimate_tokens

REPLY = Message(
    role=Role.ASSISTANT,
    parts=(Thinking(text="hm"), Text(text="I look."), ToolCall(id="1", name="read_file", arguments={"path": "a.py"})),
)
RESULT = Message(
    role=Role.TOOL, parts=(ToolResult(call_id="1", name="read_file", parts=(Text(text="x = 1"),), is_error=True),)
)


def test_a_note_is_recognised_and_its_record_goes_into_the_next_one():
    record, rest = earlier([shown("## Task\nbake", Origin.MODEL), said("more")])

    assert record == "## Task\nbake"
    assert rest == [said("more")]


def test_without_a_note_there_is_no_record():
    assert earlier([said("hello")]) == ("", [said("hello")])
    assert earlier([]) == ("", [])


def test_the_writer_sees_the_record_the_conversation_and_what_matters():
    question = asked("old", "new", "the prices")

    assert question.index("old") < question.index("new") < question.index("the prices")
    assert asked("", "new", "") == "# The conversation\nnew"


def test_the_conversation_is_shown_as_who_said_what_without_thinking():
    text = "\n".join(portions([said("Look"), REPLY, RESULT], 1000))

    assert text == ("[PERSON] Look\n[AGENT] I look.\ncalls read_file({'path': 'a.py'})\n[TOOL] read_file failed: x = 1")


@pytest.mark.parametrize("part", [Image(data="aGk="), File(name="a.pdf", media_type="application/pdf")])
def test_an_attachment_is_named(part):
    assert "an attachment" in next(portions([Message(role=Role.USER, parts=(part,))], 100))


@given(st.lists(st.text(max_size=300), max_size=30), st.integers(20, 400))
def test_portions_hold_everything_within_their_size(texts, tokens):
    made = list(portions([said(text) for text in texts], tokens))

    assert all(estimate_tokens(each) <= tokens + 24 + len(texts) for each in made)
    assert sum(each.count("[PERSON]") for each in made) >= len(texts)


@given(st.text(max_size=2000), st.integers(1, 100))
def test_a_clipped_text_keeps_beginning_and_end(text, tokens):
    short = clipped(text, tokens)

    assert short == text or estimate_tokens(short) <= tokens + 16


def test_the_persons_first_and_last_words_are_quoted_but_not_the_runtimes():
    note = Message(role=Role.USER, parts=(Text(text="time", origin=Origin.RUNTIME),))
    text = quoted([shown("old", Origin.MODEL), said("begin"), note, REPLY, said("end")], 100)

    assert text == "## How the person began\nbegin\n## The person's last words\nend"
    assert quoted([REPLY], 100) == ""


def test_a_record_without_a_model_keeps_the_earlier_record_and_a_line_of_each():
    text = trimmed([shown("## Task\nbake", Origin.MODEL), said("more  \n salt"), REPLY, RESULT], 200)

    assert text == "## Task\nbake\n- person: more salt\n- agent: I look. (used read_file)"
    assert trimmed([], 100) == ""
