"""Learning part of the demo: the same task in several conversations, with what was learned in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from hermes_agent.app.demo import CHANGED, PUBLISH, SHOP, Stage, begin_anew, demo_stage
from hermes_agent.cli.demo.child import hermes
from hermes_agent.cli.demo.show import Check, Task, all_hold, finish, follow, heading, run_command
from hermes_agent.cli.output import announce
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Replied, ToolEnded

SKILL = "publish-price-list"
HUNDRED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What one conversation of the learning demo took; `done`: whether the task was solved."""

    calls: int
    turns: int
    tokens: int
    seconds: float
    done: bool


async def demonstrate_learning(folder: Path, variables: Mapping[str, str]) -> bool:
    """Run the three conversations in an empty folder; True if every check holds."""
    announce(
        "The model of this demonstration is scripted. It hears the same words in three conversations; what it does\n"
        "differs by what the program tells it, and by nothing else. Review, skill and history are the program's own.\n"
        f"Folder: {folder}"
    )
    async with demo_stage(folder, SHOP) as stage:
        heading("   What is learned in a folder that nobody trusts waits for its owner's word: hermes trust add")
        await run_command(stage, variables, "trust", "add")
        first = await conversation(stage, variables, "1. The task is new")
        heading(
            "   The reply is there. Beside whatever comes next, the conversation is looked over (hermes learn review):"
        )
        learned = await run_command(stage, variables, "learn", "review")
        skill = stage.home.skills / SKILL / "SKILL.md"
        made = await asyncio.to_thread(content, skill)
        begin_anew(stage)
        second = await conversation(stage, variables, "2. The same words again")
        begin_anew(stage, CHANGED)
        third = await conversation(stage, variables, "3. The same words, but one command has another name now")
        patched = await asyncio.to_thread(content, skill)
        heading("   hermes learn log; hermes learn undo")
        await run_command(stage, variables, "learn", "log")
        await run_command(stage, variables, "learn", "undo")
        restored = await asyncio.to_thread(content, skill)
    compare(first, second, third)
    checks = [
        Check(claim="the first conversation took 12 tool calls, and the task is done", holds=is_done(first, 12)),
        Check(claim="a review of it made the skill", holds=bool(made) and any(SKILL in line for line in learned)),
        Check(claim="the second loaded it by itself and took 4", holds=is_done(second, 4)),
        Check(claim="the third patched the changed step at once", holds=third.done and patched not in (made, b"")),
        Check(claim="the undo restored the skill to the byte", holds=restored == made),
    ]
    return all_hold(checks)


async def conversation(stage: Stage, variables: Mapping[str, str], title: str) -> Took:
    """Run one conversation from message to reply."""
    task, began = Task(), time.monotonic()
    heading(f'{title}: hermes -z "{PUBLISH}"')
    async with hermes("-z", PUBLISH, "--json", home=stage.home, folder=stage.project, variables=variables) as watched:
        await follow(watched, task)
    seconds = time.monotonic() - began
    await finish(stage, task)
    replies = [entry.event for entry in task.log if isinstance(entry.event, Replied)]
    return Took(
        calls=sum(isinstance(entry.event, ToolEnded) for entry in task.log),
        turns=len(replies),
        tokens=sum(each.usage.input + each.usage.output for each in replies),
        seconds=seconds,
        done=(stage.project / "published.txt").is_file(),
    )


def content(file: Path) -> bytes:
    """The file's bytes; empty if it is missing."""
    return file.read_bytes() if file.is_file() else b""


def is_done(took: Took, calls: int) -> bool:
    """Whether the task was done in exactly that many calls."""
    return took.done and took.calls == calls


def compare(first: Took, second: Took, third: Took) -> None:
    """Print the comparison table."""
    heading("                      1. new   2. learned   saved   3. one step changed")
    rows = (
        ("tool calls", first.calls, second.calls, third.calls),
        ("model calls", first.turns, second.turns, third.turns),
        ("tokens", first.tokens, second.tokens, third.tokens),
        ("seconds", round(first.seconds, 1), round(second.seconds, 1), round(third.seconds, 1)),
    )
    for name, before, after, changed in rows:
        saved = HUNDRED - HUNDRED * after / before if before else 0.0
        announce(f"  {name:<16}{before:>12,}{after:>13,}{saved:>7.0f} %{changed:>22,}")
