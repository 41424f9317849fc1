"""Replays: rows that are the same to the byte for random sessions, and the speed of 200 turns."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench.figures import Figure
from bench.random_session import Shape, differences, record, replay as play
from hermes_agent.core.errors import HermesError
from hermes_agent.providers.demo.script import Pace

SESSIONS = 1000
STOPPED = 200
TURNS = 200
QUICKEST = 50
REALISTIC = Pace(first=0.3, between=0.02)
"""What a quick hosted model takes: 0.3 s to the first event, 50 events a second; with tools of up to 0.1 s."""


def measure() -> list[Figure]:
    """The figures of this module."""
    wrong, stopped = asyncio.run(sessions(range(SESSIONS))), asyncio.run(sessions(range(STOPPED), Shape(stops=True)))
    return [
        Figure(name=f"{SESSIONS} random sessions, replays that differ", value=wrong, unit="", limit=0),
        Figure(name=f"{STOPPED} random sessions with stops, replays that differ", value=stopped, unit="", limit=0),
        speed(f"replay of a run of {TURNS} turns", Shape(messages=1, turns=TURNS, steady=True), limit=1),
        speed(f"replay of {TURNS} runs of one turn", Shape(messages=TURNS, turns=1, steady=True), limit=1),
    ]


async def sessions(seeds: range, shape: Shape | None = None) -> int:
    """Record and replay a random session for each seed; how many replays differ."""
    wrong = 0
    for seed in seeds:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            await record(folder, seed, shape)
            try:
                await play(folder)
                found = differences(folder)
            except* HermesError as failed:
                found = [repr(failed.exceptions[0])]
            if found:
                print(f"seed {seed}: {found[0]}", file=sys.stderr)
                wrong += 1
    return wrong


def speed(name: str, shape: Shape, limit: float | None) -> Figure:
    """The replay of such a session beside a fiftieth of the time that it took."""
    shape = replace(shape, pace=REALISTIC, tool_seconds=0.1, faults=False)
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        began = time.perf_counter()
        asyncio.run(record(folder, 1, shape))
        real = time.perf_counter() - began
        began = time.perf_counter()
        asyncio.run(play(folder))
        took = time.perf_counter() - began
        assert not differences(folder)
    floor = real / QUICKEST
    return Figure(name=f"{name}, against real time / {QUICKEST}", value=took, unit="s", floor=floor, limit=limit)
