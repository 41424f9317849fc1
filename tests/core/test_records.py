"""What was written as JSON comes back as the same typed value."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.chat import Busy, Conversation, Inbound, Principal, Standing
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import Compacted, Durable, Entry, MessageTaken, Replied, RunEnded, ToolEnded, ToolStarted
from hermes_agent.core.messages import (
    File,
    Image,
    Message,
    Origin,
    Part,
    Role,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from hermes_agent.core.records import revive

texts = st.builds(Text, text=st.text(), origin=st.sampled_from(Origin))
images = st.builds(Image, data=st.text(), url=st.text())
files = st.builds(File, name=st.text(), media_type=st.text(), data=st.text())
calls = st.builds(
    ToolCall, id=st.text(), name=st.text(), arguments=st.dictionaries(st.text(), st.integers() | st.text())
)
results = st.builds(
    ToolResult,
    call_id=st.text(),
    name=st.text(),
    parts=st.lists(texts | images | files).map(tuple),
    is_error=st.booleans(),
)
thoughts = st.builds(Thinking, text=st.text(), opaque=st.text(), maker=st.text(), redacted=st.booleans())
parts: st.SearchStrategy[Part] = texts | images | files | calls | results | thoughts
messages = st.builds(Message, role=st.sampled_from(Role), parts=st.lists(parts).map(tuple))


@given(messages)
def test_a_message_survives_being_written(message: Message) -> None:
    assert revive(Message, json.loads(json.dumps(asdict(message)))) == message


@given(messages, st.none() | st.floats(allow_nan=False))
def test_an_event_survives_being_written(message: Message, cost: float | None) -> None:
    event = Replied(
        turn=3,
        call_id="c",
        message=message,
        stop=StopReason.LENGTH,
        usage=Usage(input=3),
        provider="p",
        model="m",
        cost=cost,
        seconds=0.5,
    )

    assert revive(Durable, json.loads(json.dumps(asdict(event)))) == event


@given(messages | st.none())
def test_an_event_that_may_hold_a_message_survives_being_written(message: Message | None) -> None:
    event = Compacted(
        head=1, upto=9, note=message, pruned=("a",), before=90, after=9, strategy="summary", cause="window"
    )

    assert revive(Durable, json.loads(json.dumps(asdict(event)))) == event


def test_an_inbound_survives_being_written() -> None:
    inbound = Inbound(
        source="cli",
        source_id="1",
        principal=Principal(platform="cli", user="me", standing=Standing.OWNER),
        conversation=Conversation(platform="cli", chat="x"),
        parts=(Text(text="hi", origin=Origin.OWNER),),
        received=1.5,
        busy=Busy.QUEUE,
    )

    assert revive(Inbound, json.loads(json.dumps(asdict(inbound)))) == inbound


def test_a_field_that_is_missing_takes_its_default() -> None:
    assert revive(Durable, {"kind": "run_ended", "outcome": "answered", "text": "x", "turns": 1}) == RunEnded(
        outcome="answered", text="x", turns=1
    )


def test_a_field_of_a_later_version_is_ignored() -> None:
    assert revive(Text, {"kind": "text", "text": "x", "origin": "owner", "later": 1}) == Text(
        text="x", origin=Origin.OWNER
    )


def test_an_enum_comes_back_as_its_member() -> None:
    plain = {"kind": "tool_started", "turn": 1, "call_id": "c", "tool": "t", "effect": "writes", "summary": "s"}

    assert revive(Durable, plain) == ToolStarted(turn=1, call_id="c", tool="t", effect=Effect.WRITES, summary="s")


@pytest.mark.parametrize(
    "plain", [{"kind": "nonsense"}, {}, [], {"kind": "tool_ended"}, {"kind": "message_taken", "message": 3}]
)
def test_what_does_not_fit_is_a_value_error(plain: object) -> None:
    with pytest.raises(ValueError, match="not a"):
        revive(Durable, plain)


def test_an_entry_holds_any_durable_event() -> None:
    message = Message(role=Role.TOOL, parts=(ToolResult(call_id="c", name="t", parts=(Text(text="x"),)),))
    for event in (
        MessageTaken(message=message, inbox=4),
        ToolEnded(turn=1, call_id="c", tool="t", message=message, is_error=False, seconds=0.1),
    ):
        entry = Entry(number=1, run="r", at=1.0, event=event)

        assert revive(Entry, json.loads(json.dumps(asdict(entry)))) == entry


def test_what_may_be_a_number_or_a_text_stays_as_it_is() -> None:
    assert [revive(int | str | None, plain) for plain in (1, "a", None)] == [1, "a", None]


def test_a_number_stands_for_a_text_and_nothing_for_a_record_that_may_be_none():
    assert revive(Text, {"kind": "text", "text": 7, "origin": "owner"}) == Text(text="7", origin=Origin.OWNER)
    assert revive(Text | Image | None, None) is None
