"""The checks after the demonstration, shown with logs and projects that break each claim."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.cli.demo.checks import WALKED_ONCE, check_log, check_project
from hermes_agent.core.events import Durable, Entry, MessageTaken, Outcome, Replied, RunEnded, RunStarted, ToolEnded
from hermes_agent.core.messages import Message, Role, Text, ToolCall, ToolResult, said
from hermes_agent.core.model import StopReason, Usage
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
