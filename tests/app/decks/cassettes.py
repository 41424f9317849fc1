"""Recorded and replayed systems for tests: a home in front of a model server, and what a database holds."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

from hermes_agent.app.decks.driving import Played, played
from hermes_agent.app.wiring import Options
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.tool import Tool
from hermes_agent.host.paths import Home
from hermes_agent.providers.cassette.playing import Player, Replay
from hermes_agent.providers.cassette.reading import read_cassette
from hermes_agent.providers.cassette.recording import Recorder
from hermes_agent.testing.scripted import Script
from tests.app.place import Place, place


@asynccontextmanager
async def recorded(
    folder: Path, script: Script, *, tools: Sequence[Tool] = (), attended: bool = True, more: str = ""
) -> AsyncIterator[Place]:
    """A system whose process is recorded into `folder/tape.jsonl`."""
    recorder = Recorder(folder / "tape.jsonl", SystemClock())
    options = Options(extra_tools=tuple(tools), attended=attended, tape=recorder)
    async with place(folder, script, options, more=more) as found:
        yield found


async def replayed(folder: Path, **how: object) -> tuple[Played, ...]:
    """Play `folder/tape.jsonl` in a fresh home, `folder/fresh`."""
    root = folder / "fresh"
    home = Home(root=root, base=root).ensure()
    path = folder / "tape.jsonl"
    plan = Replay(path=path, driven=True, database=str(home.database), **how)  # type: ignore[arg-type]
    async with played(home, Player(read_cassette(path), plan)) as sessions:
        return sessions


def dump(database: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, in order."""
    with closing(sqlite3.connect(database)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in sorted(names)}
