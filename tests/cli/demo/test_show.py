"""How the demonstration follows a child; the whole of it is run in tests/cli/commands/test_demo.py."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from hermes_agent.cli.demo.child import Remark, Watched
from hermes_agent.cli.demo.show import WALKED_ONCE, Narrator, Task, check_log, check_project, counted, follow, wait_for
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import (
    Durable,
    Entry,
    Event,
    MessageTaken,
    Notice,
    Outcome,
    Replied,
    RunEnded,
    RunStarted,
    Seen,
    ToolEnded,
    ToolStarted,
)
from hermes_agent.core.messages import Message, Role, StopReason, Text, TextDelta, ToolCall, ToolResult, Usage, said
from hermes_agent.host.process import Child
from hermes_agent.providers.demo.server import unpack_project

HEARD = MessageTaken(message=said("go"), inbox=1)
ASKED = Replied(
    turn=1,
    call_id="m1",
    message=Message(role=Role.ASSISTANT, parts=(ToolCall(id="c1", name="terminal", arguments={}),)),
    stop=StopReason.TOOL_CALLS,
    usage=Usage(),
    provider="demo",
    model="scripted",
    cost=0.0,
    seconds=0.1,
)
RESULT = ToolEnded(
    turn=1,
    call_id="c1",
    tool="terminal",
    message=Message(role=Role.TOOL, parts=(ToolResult(call_id="c1", name="terminal", parts=(Text(text="x"),)),)),
    is_error=False,
    seconds=0.1,
)
ANSWERED = replace(ASKED, call_id="m2", message=Message(role=Role.ASSISTANT, parts=(Text(text="done"),)))
END = RunEnded(outcome=Outcome.ANSWERED, text="done", turns=2)
GOOD: tuple[Durable, ...] = (RunStarted(), HEARD, ASKED, RESULT, ANSWERED, END)


def log(*events: Durable, first: int = 1, run: str = "r") -> list[Entry]:
    return [Entry(number=number, run=run, at=0.0, event=event) for number, event in enumerate(events, first)]


def broken(entries: list[Entry]) -> list[str]:
    return [check.claim for check in check_log(entries, killed=True) if not check.holds]


def test_a_good_log_passes():
    assert broken(log(*GOOD)) == []


@pytest.mark.parametrize(
    ("entries", "claim"),
    [
        (log(*GOOD, first=2), "the log has no gap"),
        (log(*GOOD, HEARD), "no message is doubled"),
        (log(*GOOD, ANSWERED), "no message is doubled"),
        (log(*GOOD, RESULT), "each of 1 tool calls has one result"),
        (log(*(event for event in GOOD if event is not RESULT)), "each of 1 tool calls has one result"),
        (log(*GOOD[:-1]), "the run ended with an answer"),
        (log(*GOOD, END), "the run ended with an answer"),
        ([*log(*GOOD[:3]), *log(*GOOD[3:], first=4, run="another")], "the run that was killed is the one that ended"),
    ],
)
def test_each_claim_can_be_broken(entries: list[Entry], claim: str):
    found = broken(entries)

    assert any(claim in text for text in found), found


async def test_the_untouched_project_passes_none_of_its_checks(tmp_path: Path):
    unpack_project(tmp_path)

    assert not any(check.holds for check in await check_project(tmp_path, os.environ))


async def test_a_command_that_ran_twice_is_found(tmp_path: Path):
    unpack_project(tmp_path)
    (tmp_path / "stocktake.log").write_text(WALKED_ONCE)
    once = await check_project(tmp_path, os.environ)
    (tmp_path / "stocktake.log").write_text(WALKED_ONCE * 2)
    twice = await check_project(tmp_path, os.environ)

    assert [check.holds for check in once] == [False, True, False]
    assert [check.holds for check in twice] == [False, False, False]


class Victim:
    """A child that only notes what it is sent."""

    def __init__(self) -> None:
        self.signals: list[int] = []

    def signal(self, number: int) -> None:
        self.signals.append(number)


def watched(victim: Victim, *lines: Event | str, hangs: bool = False) -> Watched:
    async def come() -> AsyncGenerator[Seen | Remark, None]:
        for each in lines:
            if isinstance(each, str):
                yield Remark(text=each)
            else:
                yield Seen(session="s1", number=1, run="r", at=0.0, event=each)
        if hangs:
            await asyncio.Event().wait()

    return Watched(child=cast(Child, victim), lines=come())


def starts(command: str) -> ToolStarted:
    return ToolStarted(turn=1, call_id="c", tool="terminal", effect=Effect.EXEC, summary=f"terminal: {command}")


async def test_the_child_is_killed_in_its_slow_command_and_not_before(tmp_path: Path, capsys):
    begun = tmp_path / "log"
    begun.touch()
    victim = Victim()
    task = Task()
    early = await follow(watched(victim, starts("python3 -m unittest")), task, begun)
    spared = list(victim.signals)
    late = await follow(watched(victim, starts("python3 -m inventory.stocktake")), task, begun)

    assert (early, spared) == (False, [])
    assert (late, victim.signals) == (True, [signal.SIGKILL])
    assert task.session == "s1"


async def test_a_child_that_is_not_to_be_killed_lives(capsys):
    victim = Victim()

    assert not await follow(watched(victim, starts("python3 -m inventory.stocktake")), Task())
    assert victim.signals == []


async def test_events_and_remarks_are_lines_without_control_codes(capsys):
    await follow(watched(Victim(), Notice(text="red \x1b[31malert"), "a remark"), Task())
    lines = capsys.readouterr().out.splitlines()

    assert "notice: red" in lines[0]
    assert lines[1].endswith("remark: a remark")
    assert "\x1b" not in "".join(lines)


async def test_a_child_that_hangs_is_given_up(capsys):
    assert not await follow(watched(Victim(), hangs=True), Task(), limit=0.05)
    assert "did not end within" in capsys.readouterr().out


def test_waiting_ends_when_the_file_is_there(tmp_path: Path):
    waiting = threading.Thread(target=wait_for, args=(tmp_path / "log",))
    waiting.start()
    assert waiting.is_alive()
    (tmp_path / "log").touch()
    waiting.join(2)

    assert not waiting.is_alive()


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
