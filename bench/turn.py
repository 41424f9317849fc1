"""The harness's own time in a turn: from the end of the model's answer to the start of the next request, with one call
in it, beside the least that does the same by hand: http.client, and a request that only grows. And a checkpoint, beside
`git status` in a repository of the same files."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.answering import answering
from bench.figures import Figure, median
from bench.start import HERMES
from hermes_agent.app.opening import Options, open_system
from hermes_agent.cli.main import QUIET
from hermes_agent.core.chat import Conversation, Inbound
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.messages import Text
from hermes_agent.host.paths import Home
from hermes_agent.tools.checkpoints.checkpoints import Cause, Checkpoints
from hermes_agent.tools.settings import CheckpointSettings

ROUNDS = 5
SIZES = (10, 1_000, 15_000)
IN_A_FOLDER = 20
TIMES = 15
SETTLED = 2.5
"""Seconds after which a file can no longer change unseen."""
KEY = "a-key-of-the-bench"
LONG, SHORT = 410, 60
"""Turns of a session."""
EARLY, LATE = slice(10, 30), slice(390, LONG)
FEW = slice(10, SHORT)

Calls = list[list[tuple[str, str]]]
READS: Calls = [[("read_file", '{"path": "notes.txt"}')]] * LONG
COMMANDS: Calls = [[("terminal", '{"command": "cat notes.txt"}')]] * SHORT
CHANGES: Calls = [[("terminal", json.dumps({"command": f"echo {turn} > out.txt"}))] for turn in range(SHORT)]
UNKEPT = "checkpoints:\n  enabled: false\n"


def measure() -> list[Figure]:
    """The figures of this module: of each the middle one of several rounds, ours and the floor in turn."""
    gc.set_threshold(QUIET, 20, 20)  # as the program sets it, for ours and for the floor
    reads = [_round(READS) for _ in range(ROUNDS)]
    figures = [
        _middle("a read, around turn 20", _part(reads, EARLY), 12),
        _middle("a read, around turn 400", _part(reads, LATE), 3),
    ]
    early, late = (figure.ratio or 0.0 for figure in figures)
    figures.append(Figure(name="ratio at turn 400 by ratio at turn 20", value=late, floor=early, unit="x", limit=1.5))
    for name, calls, more in (
        ("a command", COMMANDS, ""),
        ("a command, without checkpoints", COMMANDS, UNKEPT),
        ("a command that changes a file", CHANGES, ""),
    ):
        figures.append(_middle(name, _part([_round(calls, more) for _ in range(ROUNDS)], FEW), 5))
    figures += [_first("a read", READS), _first("a command", COMMANDS)]
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            figures += asyncio.run(_of(Path(folder), size))
    return figures


Round = tuple[list[float], list[float]]
"""The milliseconds of each turn: ours, and the floor's."""


def _round(calls: Calls, more: str = "") -> Round:
    with tempfile.TemporaryDirectory() as folder:
        floor = _scheduler(_project(Path(folder) / "floor"), calls)
        return asyncio.run(_ours(_project(Path(folder) / "ours"), calls, more)), floor


def _project(folder: Path) -> Path:
    folder.mkdir()
    (folder / "notes.txt").write_text("A line of the file that is read in every turn.\n" * 40)
    return folder


def _part(rounds: list[Round], part: slice) -> list[tuple[float, float]]:
    return [(statistics.median(ours[part]), statistics.median(floor[part])) for ours, floor in rounds]


def _middle(name: str, pairs: list[tuple[float, float]], limit: float) -> Figure:
    """The round whose ratio is the median."""
    value, floor = sorted(pairs, key=lambda pair: pair[0] / pair[1])[len(pairs) // 2]
    return Figure(name=f"own time of a turn: {name}", value=value, floor=floor, unit="ms", limit=limit)


def _first(name: str, calls: Calls) -> Figure:
    """The first turn of a program that was just started: what it loads then is in it."""
    ours, floor = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            home, project = _home(Path(folder)), _project(Path(folder) / "project")
            with answering(calls[:1]) as server:
                _configure(home, server.url, "")
                variables = {**os.environ, "HERMES_HOME": str(home.root)}
                command = [sys.executable, "-P", "-c", HERMES, "-z", "Do it."]
                subprocess.run(
                    command, check=True, env=variables, cwd=project, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
                )
            ours.append(server.gaps[0])
            floor.append(_scheduler(project, calls[:1])[0])
    return Figure(
        name=f"own time of the first turn: {name}",
        value=statistics.median(ours),
        floor=statistics.median(floor),
        unit="ms",
    )


def _home(folder: Path) -> Home:
    return Home(root=folder / "home", base=folder / "home").ensure()


def _configure(home: Home, url: str, more: str) -> None:
    home.config_file.write_text(
        f"model:\n  default: custom/m\n  base_url: {url}\nagent:\n  max_turns: {LONG + 10}\n{more}"
    )
    home.env_file.write_text(f"CUSTOM_API_KEY={KEY}\n")
    home.env_file.chmod(0o600)


async def _ours(folder: Path, calls: Calls, more: str) -> list[float]:
    with answering(calls) as server:
        home = _home(folder.parent)
        _configure(home, server.url, more)
        async with open_system(home, Options(attended=False)) as runtime:
            place = Conversation(platform="bench")
            record = await runtime.hermes.open_session(place, runtime.owner, workspace=str(folder))
            await runtime.hermes.submit(
                Inbound(
                    source="bench",
                    source_id="1",
                    principal=runtime.owner,
                    conversation=place,
                    parts=(Text(text="Do it again and again."),),
                    received=0.0,
                ),
                record.id,
            )
            async for _ in runtime.hermes.follow(record.id, 0):
                pass
    return server.gaps


def _scheduler(folder: Path, calls: Calls) -> list[float]:
    """The same conversation without a harness: read the stream, do the call, send everything again."""
    with answering(calls) as server:
        place, _, path = server.url.removeprefix("http://").partition("/")
        connection = http.client.HTTPConnection(place)
        tools = [{"type": "function", "function": {"name": "act", "parameters": {"type": "object"}}}]
        head = json.dumps({"model": "m", "stream": True, "tools": tools})[:-1].encode() + b', "messages": ['
        said = [json.dumps({"role": "user", "content": "Do it again and again."}).encode()]
        while call := _reply(connection, f"/{path}/chat/completions", head + b", ".join(said) + b"]}"):
            asked = {"id": call["id"], "type": "function", "function": call}
            content = _act(folder, json.loads(call["arguments"]))
            said.append(json.dumps({"role": "assistant", "content": None, "tool_calls": [asked]}).encode())
            said.append(json.dumps({"role": "tool", "tool_call_id": call["id"], "content": content}).encode())
        connection.close()
    return server.gaps


def _act(folder: Path, arguments: dict[str, str]) -> str:
    if "path" in arguments:
        return (folder / arguments["path"]).read_text()
    command = ["bash", "-c", arguments["command"]]  # the shell that a model writes for, as ours
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def _reply(connection: http.client.HTTPConnection, path: str, body: bytes) -> dict[str, str]:
    call = {"id": "", "name": "", "arguments": ""}
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    connection.request("POST", path, body, headers)
    for line in connection.getresponse().read().splitlines():
        if line.startswith(b"data: {"):
            _take(call, json.loads(line[6:]))
    return call if call["id"] else {}


def _take(call: dict[str, str], chunk: dict[str, Any]) -> None:
    for choice in chunk.get("choices", ()):
        for part in choice["delta"].get("tool_calls") or ():
            call["id"] = part.get("id") or call["id"]
            call["name"] = part["function"].get("name") or call["name"]
            call["arguments"] += part["function"].get("arguments") or ""


async def _of(folder: Path, size: int) -> list[Figure]:
    work = _files(folder / "work", size)
    kept = Checkpoints(folder / "kept", CheckpointSettings(), SystemClock())
    first = await _checkpoint(kept, work)
    git = _repository(work, folder)
    await asyncio.sleep(SETTLED)
    await _checkpoint(kept, work)
    git()
    unchanged, changed, floor = [], [], []
    for number in range(TIMES):
        unchanged.append(await _checkpoint(kept, work))
        floor.append(median(git, 1))
        (work / "0" / "0.txt").write_text(f"{number}")
        changed.append(await _checkpoint(kept, work))
    least = sorted(floor)[TIMES // 2]
    return [
        Figure(name=f"first checkpoint of {size:,} files", value=first, unit="ms"),
        Figure(
            name=f"checkpoint of {size:,} files, nothing changed",
            value=sorted(unchanged)[TIMES // 2],
            floor=least,
            unit="ms",
            limit=3,
        ),
        Figure(
            name=f"checkpoint of {size:,} files, one changed",
            value=sorted(changed)[TIMES // 2],
            floor=least,
            unit="ms",
            limit=5,
        ),
    ]


def _files(folder: Path, size: int) -> Path:
    for number in range(size):
        place = folder / str(number // IN_A_FOLDER)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.txt").write_text(f"{number}\n" * 20)
    return folder


async def _checkpoint(kept: Checkpoints, work: Path) -> float:
    began = time.perf_counter()
    await kept.save(work, Cause(why="bench"))
    return (time.perf_counter() - began) * 1000


def _repository(work: Path, folder: Path) -> Callable[[], float]:
    """What gives the milliseconds of `git status`."""
    environment = {**os.environ, "GIT_DIR": str(folder / "git"), "GIT_WORK_TREE": str(work)}

    def git(*words: str) -> float:
        began = time.perf_counter()
        subprocess.run(["git", *words], cwd=work, env=environment, check=True, stdout=subprocess.DEVNULL)
        return (time.perf_counter() - began) * 1000

    git("init", "-q")
    git("add", "--all")
    return lambda: git("status", "--porcelain")
