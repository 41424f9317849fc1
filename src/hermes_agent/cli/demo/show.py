"""Script of `hermes demo`: runs its tasks, kills and resumes the program, narrates events, and checks the result."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import field
from pathlib import Path

from hermes_agent.app.demo import EXTEND, REPAIR, SLOW_COMMAND, SLOW_LOG, Stage, demo_stage, log_of
from hermes_agent.cli.demo.child import Remark, Watched, hermes
from hermes_agent.cli.output import announce
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import (
    Entry,
    Event,
    MessageTaken,
    Notice,
    Outcome,
    PrefixFrozen,
    Replied,
    RunEnded,
    RunStarted,
    Seen,
    ToolEnded,
    ToolStarted,
)
from hermes_agent.core.messages import ToolCall, ToolResult
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
    """A claim of the demo about its result, and whether it holds."""

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


LONGEST = 90
ANSWER_INDENT = "\n" + " " * 19  # below the words that follow "answer: " and the seconds


def counted(entries: Sequence[Entry], seconds: float) -> str:
    """Totals of one task, from its log."""
    replies = [entry.event.usage for entry in entries if isinstance(entry.event, Replied)]
    calls = sum(isinstance(entry.event, ToolEnded) for entry in entries)
    tokens = sum(usage.input + usage.output for usage in replies)
    cached = sum(usage.cached for usage in replies)
    return (
        f"{len(replies)} model calls, {calls} tool calls, {tokens:,} tokens ({cached:,} of them cached), "
        f"{len(entries)} events committed, {seconds:.1f} s"
    )


class Narrator:
    """Formats the events of a demo run as lines. It matches results to their tool calls, as several run in parallel."""

    def __init__(self) -> None:
        self._commands: set[str] = set()
        self._calls: dict[str, str] = {}

    def narrate(self, event: Event) -> str:
        """The event as a line; empty if there is nothing to say."""
        words = ""
        match event:
            case RunStarted(resumed=True):
                words = "takes up the interrupted run"
            case PrefixFrozen(sections=sections):
                size = sum(section.tokens for section in sections)
                words = f"prompt frozen: {len(sections)} sections, {size:,} tokens"
            case MessageTaken(message=message):
                words = f"heard: {_cut(message.text)}"
            case Replied(message=message, usage=usage, seconds=seconds) if message.tool_calls:
                self._calls.update({call.id: _in_short(call) for call in message.tool_calls})
                words = f"model, {seconds:.2f} s, {usage.output} tokens: {_cut(message.text)}"
            case ToolStarted():
                if event.effect is Effect.EXEC:
                    self._commands.add(event.call_id)
                words = f"  starts {_cut(event.summary)}"
            case ToolEnded():
                words = self._ended(event)
            case Notice(text=text):
                words = f"notice: {_cut(text)}"
            case RunEnded(text=text):
                words = "answer: " + text.replace("\n", ANSWER_INDENT)
        return words

    def _ended(self, ended: ToolEnded) -> str:
        """A call's summary, duration and outcome: a command's last line, otherwise the size of the result."""
        words = "".join(part.text for part in ended.message.parts if isinstance(part, ToolResult))
        lines = [line for line in words.splitlines() if line.strip() and not line.startswith("[")]
        what = self._calls.get(ended.call_id, ended.tool)
        last_words = lines and (ended.is_error or ended.call_id in self._commands)
        outcome = _cut(lines[-1]) if last_words else f"{len(lines)} {'line' if len(lines) == 1 else 'lines'}"
        return f"  {'FAILED' if ended.is_error else 'done'} {what}, {ended.seconds:.2f} s: {outcome}"


def _in_short(call: ToolCall) -> str:
    """The tool and its first argument."""
    first = next(iter(call.arguments.values()), "")
    return f"{call.name}: {_cut(str(first))}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


LONGEST_TASK = 60.0  # seconds; each takes less than ten
PATIENCE = 3.0  # seconds for the slow command to begin, once its intent is committed
GLANCE = 0.01


@dataclass(slots=True)
class Task:
    """State of one task of the demo: its session, the narrator of its events, its start, and at the end its log."""

    session: str = ""
    teller: Narrator = field(default_factory=Narrator)
    began: float = field(default_factory=time.monotonic)
    log: tuple[Entry, ...] = ()


async def demonstrate(folder: Path, variables: Mapping[str, str]) -> bool:
    """Run both tasks in an empty folder; True if every check holds."""
    announce(
        "The model of this demonstration is scripted: it follows a scenario file, no language model is behind it, and\n"
        "nothing leaves this machine. The rest is real: the program, its database, its tools, and the files.\n"
        f"Folder: {folder}"
    )
    async with demo_stage(folder) as stage:
        announce(f"Model:  {stage.url} (OpenAI chat completions over a loopback socket)")
        repaired = await repair(stage, variables)
        extended, killed = await extend(stage, variables)
    checks = [*await check_project(stage.project, variables), Check(claim="the program was killed", holds=killed)]
    for name, task, was_killed in (("task 1", repaired, False), ("task 2", extended, True)):
        found = check_log(task.log, killed=was_killed)
        checks += [Check(claim=f"{name}: {check.claim}", holds=check.holds) for check in found]
    return all_hold(checks, ", in the files and in the database")


async def repair(stage: Stage, variables: Mapping[str, str]) -> Task:
    """Run the first task, without interruption."""
    task = Task()
    heading(f'1. hermes -z "{REPAIR}"')
    async with hermes("-z", REPAIR, "--json", home=stage.home, folder=stage.project, variables=variables) as watched:
        await follow(watched, task)
    await finish(stage, task)
    return task


async def extend(stage: Stage, variables: Mapping[str, str]) -> tuple[Task, bool]:
    """Run the second task, kill it during its slow command, and resume. Returns also whether it was killed in time."""
    task = Task()
    heading(f'2. hermes -z "{EXTEND}"')
    async with hermes("-z", EXTEND, "--json", home=stage.home, folder=stage.project, variables=variables) as watched:
        killed = await follow(watched, task, kill_in=stage.project / SLOW_LOG)
    if killed:
        line(task, "KILLED with SIGKILL, in the middle of that command. Nothing could be put in order.")
        heading(f"   hermes --resume {task.session}")
        arguments = ("--json", "--resume", task.session)
        async with hermes(*arguments, home=stage.home, folder=stage.project, variables=variables) as watched:
            await follow(watched, task)
    await finish(stage, task)
    return task, killed


async def follow(watched: Watched, task: Task, kill_in: Path | None = None, limit: float = LONGEST_TASK) -> bool:
    """Print the child's events until it ends. With `kill_in`, kill it once the slow command has created that file."""
    try:
        async with asyncio.timeout(limit):
            return await _follow(watched, task, kill_in)
    except TimeoutError:
        line(task, f"It did not end within {limit:.0f} s and is ended.")
        return False


async def _follow(watched: Watched, task: Task, kill_in: Path | None) -> bool:
    killed = False
    async with aclosing(watched.lines) as lines:
        async for seen in lines:
            show(seen, task)
            if kill_in is not None and begins_slow_command(seen):
                await asyncio.to_thread(wait_for, kill_in)
                watched.kill()
                killed = True
    return killed


def begins_slow_command(seen: Seen | Remark) -> bool:
    """Whether this event starts the command during which the program is killed."""
    return isinstance(seen, Seen) and isinstance(seen.event, ToolStarted) and SLOW_COMMAND in seen.event.summary


def wait_for(file: Path) -> None:
    """Wait until the file exists, for a short time. Blocking: call it in a thread."""
    until = time.monotonic() + PATIENCE
    while not file.exists() and time.monotonic() < until:
        time.sleep(GLANCE)


def show(seen: Seen | Remark, task: Task) -> None:
    """Print an event's line, or the remark."""
    if isinstance(seen, Remark):
        line(task, f"remark: {seen.text}")
        return
    task.session = seen.session
    if words := task.teller.narrate(seen.event):
        line(task, words)


def line(task: Task, words: str) -> None:
    """Print a line with the seconds since the task began."""
    announce(f"  {time.monotonic() - task.began:5.2f} s  {words}")


def heading(words: str) -> None:
    """Print a heading."""
    announce(f"\n{words}")


async def finish(stage: Stage, task: Task) -> None:
    """Read the task's log and print its totals."""
    seconds = time.monotonic() - task.began
    task.log = await log_of(stage, task.session)
    announce(f"  {counted(task.log, seconds)}")


async def run_command(
    stage: Stage, variables: Mapping[str, str], *arguments: str, kill_in: Path | None = None, quiet: bool = False
) -> list[str]:
    """Run a command of the program and print its output; kill it once that file is there."""
    lines: list[str] = []
    async with (
        hermes(*arguments, home=stage.home, folder=stage.project, variables=variables) as watched,
        aclosing(watched.lines) as found,
    ):
        async for line in found:
            lines += [line.text] if isinstance(line, Remark) else []
            if not quiet:
                announce(f"     {lines[-1]}")
            if kill_in is not None:
                await asyncio.to_thread(wait_for, kill_in)
                watched.kill()
    return lines


def all_hold(checks: Sequence[Check], where: str = "") -> bool:
    """Print the claims, and return whether every one holds."""
    heading(f"Looked at afterwards{where}:")
    for check in checks:
        announce(f"  {'yes' if check.holds else 'NO '}  {check.claim}")
    return all(check.holds for check in checks)
