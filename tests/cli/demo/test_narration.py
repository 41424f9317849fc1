"""Events as lines."""

from __future__ import annotations

import pytest

from hermes_agent.cli.demo.narration import Narrator, counted
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import (
    Entry,
    Event,
    Notice,
    Outcome,
    Replied,
    RunEnded,
    RunStarted,
    ToolEnded,
    ToolStarted,
)
from hermes_agent.core.messages import Message, Role, Text, ToolCall, ToolResult
from hermes_agent.core.model import StopReason, TextDelta, Usage


def ended(text: str, *, is_error: bool = False) -> ToolEnded:
    result = ToolResult(call_id="c", name="terminal", parts=(Text(text=text),), is_error=is_error)
    message = Message(role=Role.TOOL, parts=(result,))
    return ToolEnded(turn=1, call_id="c", tool="terminal", message=message, is_error=is_error, seconds=0.25)


def replied(*parts: Text | ToolCall) -> Replied:
    return Replied(
        turn=1,
        call_id="m",
        message=Message(role=Role.ASSISTANT, parts=parts),
        stop=StopReason.END,
        usage=Usage(input=100, output=7, cached=64),
        provider="demo",
        model="scripted",
        cost=0.0,
        seconds=0.5,
    )


CALL = ToolCall(id="c", name="terminal", arguments={})


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (RunStarted(resumed=True), "takes up the interrupted run"),
        (RunStarted(), ""),
        (replied(Text(text="I run\nit."), CALL), "model, 0.50 s, 7 tokens: I run it."),
        (replied(Text(text="Done.")), ""),
        (
            ToolStarted(turn=1, call_id="c", tool="terminal", effect=Effect.EXEC, summary="terminal: ls"),
            "starts terminal",
        ),
        (ended("Ran 6 tests\n\nOK\n[exit code 0]"), "  done terminal, 0.25 s: 2 lines"),
        (ended("nothing there", is_error=True), "  FAILED terminal, 0.25 s: nothing there"),
        (Notice(text="mind the gap"), "notice: mind the gap"),
        (
            RunEnded(outcome=Outcome.ANSWERED, text="Done.\nAll of it.", turns=2),
            "answer: Done.\n                   All of it.",
        ),
        (TextDelta(text="x"), ""),
    ],
)
def test_an_event_is_a_line_or_nothing(event: Event, words: str):
    told = Narrator().narrate(event)

    assert words in told
    assert bool(words) == bool(told)


def test_a_command_is_told_with_its_last_words():
    teller = Narrator()
    teller.narrate(ToolStarted(turn=1, call_id="c", tool="terminal", effect=Effect.EXEC, summary="terminal: make"))

    assert teller.narrate(ended("Ran 6 tests\n\nOK\n[exit code 0]")) == "  done terminal, 0.25 s: OK"


def test_long_words_are_cut_to_a_line():
    assert len(Narrator().narrate(Notice(text="word " * 100))) < 130


def test_a_call_is_told_with_its_first_argument():
    teller = Narrator()
    teller.narrate(replied(ToolCall(id="c", name="read_file", arguments={"path": "a.txt", "limit": 3})))

    assert teller.narrate(ended("1|x")) == "  done read_file: a.txt, 0.25 s: 1 line"


def test_what_a_task_took_is_counted_in_its_log():
    events = (RunStarted(), replied(CALL), ended("x"), replied(Text(text="Done.")))
    entries = [Entry(number=number, run="r", at=0.0, event=event) for number, event in enumerate(events, 1)]

    assert counted(entries, 1.25) == (
        "2 model calls, 1 tool calls, 214 tokens (128 of them cached), 4 events committed, 1.2 s"
    )
