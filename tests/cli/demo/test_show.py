"""How the demonstration follows a child; the whole of it is run in tests/cli/commands/test_demo.py."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast

from hermes_agent.cli.demo.child import Remark, Watched
from hermes_agent.cli.demo.show import Task, follow, wait_for
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import Event, Notice, Seen, ToolStarted
from hermes_agent.host.process import Child


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
