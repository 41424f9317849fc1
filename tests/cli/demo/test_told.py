"""Events as lines."""

from __future__ import annotations

import pytest

from hermes_agent.cli.demo.told import Tally, Teller
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import (
    Event,
    Notice,
    Outcome,
    Replied,
    RunEnded,
    RunStarted,
    Seen,
    ToolEnded,
    ToolStarted,
    TurnStarted,
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
        (RunEnded(outcome=Outcome.ANSWERED, text="Done.\nAll of it.", turns=2), "answer: Done.\nAll of it."),
        (TextDelta(text="x"), ""),
    ],
)
def test_an_event_is_a_line_or_nothing(event: Event, words: str):
    told = Teller().tell(event)

    assert words in told
    assert bool(words) == bool(told)


def test_a_command_is_told_with_its_last_words():
    teller = Teller()
    teller.tell(ToolStarted(turn=1, call_id="c", tool="terminal", effect=Effect.EXEC, summary="terminal: make"))

    assert teller.tell(ended("Ran 6 tests\n\nOK\n[exit code 0]")) == "  done terminal: make, 0.25 s: OK"


def test_long_words_are_cut_to_a_line():
    assert len(Teller().tell(Notice(text="word " * 100))) < 130


def test_the_tally_counts_what_the_task_took():
    tally = Tally()
    for number, event in ((1, TurnStarted(turn=1, call_id="m", messages=1)), (2, replied()), (3, ended("x"))):
        tally.add(Seen(session="s", number=number, run="r", at=0.0, event=event))
    tally.seconds = 1.25

    assert tally.line() == ("1 model calls, 1 tool calls, 107 tokens (64 of them cached), 3 events committed, 1.2 s")
