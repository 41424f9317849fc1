"""What was once sent stays byte for byte: the growing request is the earlier one and more."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from hermes_agent.core.messages import Message, ModelRequest, Part, Role, Text, Thinking, ToolCall, said
from hermes_agent.host.late import late
from hermes_agent.providers.dialect import ConversationCompiler
from hermes_agent.providers.dialects import DIALECTS as TABLE
from tests.providers.asking import DIALECTS, PREFIX, Spoken, result, route_to

EVERY = pytest.mark.parametrize("spoken", DIALECTS, ids=lambda spoken: spoken.name)

TURNS = st.lists(
    st.tuples(
        st.text(max_size=20),  # words
        st.booleans(),  # thought before them
        st.lists(
            st.tuples(st.text(max_size=20), st.booleans(), st.booleans()), max_size=3
        ),  # calls: result, error, image
        st.sampled_from(["", "\r", "\u3000"]) | st.text(max_size=10),  # steering
        st.sampled_from(["none", "medium", "max"]),
    ),
    min_size=1,
    max_size=6,
)


def conversation(first: str, turns, spoken: Spoken):
    """The messages of each request in turn, every one a user's or a tool's last; a user's may be blank."""
    messages = [said(first)]
    yield list(messages), "medium"
    for place, (words, thought, calls, steering, effort) in enumerate(turns):
        parts: list[Part] = [Thinking(text="hm", opaque=spoken.opaque, maker=spoken.model)] if thought else []
        parts.append(Text(text=words.strip() or "x"))
        parts += (
            ToolCall(id=f"c{place}_{n}", name="read_file", arguments={"path": entry[0]})
            for n, entry in enumerate(calls)
        )
        messages.append(Message(role=Role.ASSISTANT, parts=tuple(parts)))
        for n, (text, is_error, image) in enumerate(calls):
            answer = result(f"c{place}_{n}", text, is_error=is_error, image=image)
            messages.append(Message(role=Role.TOOL, parts=(answer,)))
        if steering or not calls:
            messages.append(said(steering))
        yield list(messages), effort


def sent(compiler: ConversationCompiler, messages: list[Message], effort: str) -> bytes:
    request = ModelRequest(
        call_id="c", session="s", run="r", turn=1, purpose="chat", prefix=PREFIX, messages=messages, effort=effort
    )
    compiler.take(request)
    return compiler.write(request, None).body


@EVERY
@given(st.sampled_from(["begin", " "]), TURNS)
@settings(max_examples=60)
def test_a_request_begins_with_all_of_the_one_before(spoken: Spoken, first: str, turns):
    route = route_to(spoken.model)
    dialect = late(TABLE[spoken.name])
    compiler, before = dialect.compiler(route), b""
    for messages, effort in conversation(first, turns, spoken):
        body = sent(compiler, messages, effort)
        assert body == sent(dialect.compiler(replace(route)), messages, effort), "kept and fresh requests differ"
        plain = re.sub(rb"\]," + spoken.tail + rb".*$", b"", body.replace(spoken.mark, b""), flags=re.S)
        assert plain.startswith(before)
        before = plain
