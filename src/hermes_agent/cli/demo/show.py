"""The demonstration from its first line to its last."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import field
from pathlib import Path

from hermes_agent.app.demo import EXTEND, REPAIR, SLOW_COMMAND, SLOW_LOG, Stage, demo_stage, log_of
from hermes_agent.cli.demo.checks import Check, check_log, check_project
from hermes_agent.cli.demo.child import Remark, Watched, hermes
from hermes_agent.cli.demo.narration import Narrator, counted
from hermes_agent.cli.output import say
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Entry, Seen, ToolStarted

LONGEST_TASK = 60.0  # seconds; each takes less than ten
PATIENCE = 3.0  # seconds for the slow command to begin, once its intent is committed
GLANCE = 0.01


@dataclass(slots=True)
class Task:
    """One task as it is shown: which session it became, its words, and in the end its log."""

    session: str = ""
    teller: Narrator = field(default_factory=Narrator)
    began: float = field(default_factory=time.monotonic)
    log: tuple[Entry, ...] = ()


async def demonstrate(folder: Path, variables: Mapping[str, str]) -> bool:
    """Show both tasks in an empty folder; True where every check holds."""
    print_line(
        "The model of this demonstration is scripted: it follows a scenario file, no language model is behind it, and"
    )
    print_line("nothing leaves this machine. The rest is real: the program, its database, its tools, and the files.")
    print_line(f"Folder: {folder}")
    async with demo_stage(folder) as stage:
        print_line(f"Model:  {stage.url} (OpenAI chat completions over a loopback socket)")
        repaired = await repair(stage, variables)
        extended, killed = await extend(stage, variables)
    heading("Looked at afterwards, in the files and in the database:")
    checks = [*await check_project(stage.project, variables), Check(claim="the program was killed", holds=killed)]
    for name, task, was_killed in (("task 1", repaired, False), ("task 2", extended, True)):
        found = check_log(task.log, killed=was_killed)
        checks += [Check(claim=f"{name}: {check.claim}", holds=check.holds) for check in found]
    for check in checks:
        print_line(f"  {'yes' if check.holds else 'NO '}  {check.claim}")
    return all(check.holds for check in checks)


async def repair(stage: Stage, variables: Mapping[str, str]) -> Task:
    """The first task, without a disturbance."""
    task = Task()
    heading(f'1. hermes -z "{REPAIR}"')
    async with hermes("-z", REPAIR, "--json", home=stage.home, folder=stage.project, variables=variables) as watched:
        await follow(watched, task)
    await finish(stage, task)
    return task


async def extend(stage: Stage, variables: Mapping[str, str]) -> tuple[Task, bool]:
    """The second task, killed while its slow command runs, then resumed; and whether it really was killed then."""
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
    """Show what the child does until it ends. With `kill_in` it is killed once the slow command has made that file."""
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
    """Whether this event is the committed intent of the command in whose middle the program is killed."""
    return isinstance(seen, Seen) and isinstance(seen.event, ToolStarted) and SLOW_COMMAND in seen.event.summary


def wait_for(file: Path) -> None:
    """Return when the file is there, or after a moment. Blocks: call it in a thread."""
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
    """A line of a task, with the seconds since it began."""
    print_line(f"  {time.monotonic() - task.began:5.2f} s  {words}")


def heading(words: str) -> None:
    """A line that begins something."""
    print_line("")
    print_line(words)


async def finish(stage: Stage, task: Task) -> None:
    """Read the task's log and print what it took."""
    seconds = time.monotonic() - task.began
    task.log = await log_of(stage, task.session)
    print_line(f"  {counted(task.log, seconds)}")


def print_line(words: str) -> None:
    """A line that is on its way at once, into a pipe too."""
    say(words)
    sys.stdout.flush()
