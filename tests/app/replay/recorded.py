"""Recorded systems for tests, and their replays."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes_agent.app.opening import Options
from hermes_agent.app.replay import Played, played
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.tool import Tool
from hermes_agent.host.paths import Home
from hermes_agent.replay.cassette import read_cassette
from hermes_agent.replay.recorder import Recorder
from hermes_agent.replay.replayer import Replay, player_of
from hermes_agent.testing.scripted import Script
from tests.app.place import Place, place

TAPE = "tape.jsonl"


@asynccontextmanager
async def recorded(
    folder: Path, script: Script, *, tools: Sequence[Tool] = (), more: str = "", titles: bool = False, model: str = ""
) -> AsyncIterator[Place]:
    """A system whose process is recorded into `folder/tape.jsonl`."""
    options = Options(extra_tools=tuple(tools), tape=Recorder(folder / TAPE, SystemClock()), titles=titles, model=model)
    async with place(folder, script, options, more=more) as found:
        yield found


async def replayed(folder: Path, **how: str | int | bool) -> Played:
    """Play the one session of `folder/tape.jsonl` in a home of its own, `folder/fresh`."""
    home = Home(root=folder / "fresh", base=folder / "fresh").ensure()
    plan = Replay(driven=True, database=str(home.database), **how)  # type: ignore[arg-type]  # the fields of `Replay`
    async with played(home, player_of(read_cassette(folder / TAPE), plan)) as sessions:
        return sessions[0]


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The lines of one kind."""
    parsed = [json.loads(line) for line in (folder / TAPE).read_text().splitlines()]
    return [line for line in parsed if line["kind"] == kind]
