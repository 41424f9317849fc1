"""Checks after the demo, on the files and the log instead of the model's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_agent.app.demo import SLOW_COMMAND, SLOW_LOG
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Entry, MessageTaken, Outcome, Replied, RunEnded, ToolEnded
from hermes_agent.core.messages import ToolResult
from hermes_agent.host.process import run

TESTS = ("python3", "-m", "unittest")
WALKED_ONCE = "stocktake begun\nstocktake finished\n"
# What the second task adds, and where: each must stand there exactly once.
ADDED = (
    ("inventory/report.py", "def total_by_category("),
    ("tests/test_report.py", "def test_total_by_category"),
    ("CHANGELOG.md", "`report.total_by_category`"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A claim, and whether it holds."""

    claim: str
    holds: bool


async def check_project(project: Path, variables: Mapping[str, str]) -> list[Check]:
    """Check the project's files."""
    tests = await run(TESTS, env=variables, cwd=str(project))
    ran = next((line for line in tests.err.decode().splitlines() if line.startswith("Ran ")), "no test ran")
    walked = (project / SLOW_LOG).read_text("utf-8") if (project / SLOW_LOG).exists() else ""
    added = all((project / name).read_text("utf-8").count(text) == 1 for name, text in ADDED)
    return [
        Check(claim=f"the project's tests pass now ({ran.split(' in ')[0]})", holds=tests.code == 0),
        Check(
            claim=f"the command that ran when the program was killed (`{SLOW_COMMAND}`) ran once, to its end",
            holds=walked == WALKED_ONCE,
        ),
        Check(claim="function, test and changelog line stand in their files exactly once", holds=added),
    ]


def check_log(entries: Sequence[Entry], *, killed: bool) -> list[Check]:
    """Check a session's log."""
    events = [entry.event for entry in entries]
    numbers = [entry.number for entry in entries]
    said = [event.inbox for event in events if isinstance(event, MessageTaken)]
    calls = [call.id for event in events if isinstance(event, Replied) for call in event.message.tool_calls]
    results = [
        part.call_id
        for event in events
        if isinstance(event, ToolEnded)
        for part in event.message.parts
        if isinstance(part, ToolResult)
    ]
    replies = [event.call_id for event in events if isinstance(event, Replied)]
    once = all(_most(ids) == 1 for ids in (said, replies, calls) if ids)
    ended = [event.outcome for event in events if isinstance(event, RunEnded)]
    checks = [
        Check(claim=f"the log has no gap: events 1 to {len(numbers)}", holds=numbers == [*range(1, len(numbers) + 1)]),
        Check(claim=f"no message is doubled: {len(said)} heard, {len(replies)} replies", holds=once),
        Check(claim=f"each of {len(calls)} tool calls has one result", holds=Counter(calls) == Counter(results)),
        Check(claim="the run ended with an answer, once", holds=ended == [Outcome.ANSWERED]),
    ]
    if killed:
        whole = len({entry.run for entry in entries}) == 1
        checks.append(Check(claim="the run that was killed is the one that ended", holds=whole and bool(ended)))
    return checks


def _most(ids: Sequence[object]) -> int:
    return max(Counter(ids).values(), default=0)
