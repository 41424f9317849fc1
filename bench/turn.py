"""The harness's own time in a turn: from the end of the model's answer to the start of the next request, one read_file
call in it, beside a bare httpx2 loop that does the same."""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import httpx2

from bench.answering import answering
from bench.figures import Figure
from hermes_agent.app.wiring import Options, open_runtime
from hermes_agent.cli.main import QUIET
from hermes_agent.core.inbound import Conversation, Inbound
from hermes_agent.core.messages import Text
from hermes_agent.host.paths import Home

TURNS = 410
ROUNDS = 5
KEY = "a-key-of-the-bench"


def measure() -> list[Figure]:
    """The figures of this module: the middle one of several rounds, ours and the floor in turn."""
    gc.set_threshold(QUIET, 20, 20)  # as the program sets it, for ours and for the floor
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "notes.txt").write_text("A line of the file that is read in every turn.\n" * 40)
            floor = asyncio.run(_floor(Path(folder)))
            rounds.append((asyncio.run(_ours(Path(folder))), floor))
    figures = [_middle(rounds, "around turn 20", slice(10, 30)), _middle(rounds, "around turn 400", slice(390, TURNS))]
    early, late = (figure.ratio or 0.0 for figure in figures)
    last = Figure(name="ratio at turn 400 by ratio at turn 20", value=late, floor=early, unit="x", limit=1.5)
    return [*figures, last]


def _middle(rounds: list[tuple[list[float], list[float]]], when: str, part: slice) -> Figure:
    """The round whose ratio is the median."""
    pairs = [(statistics.median(ours[part]), statistics.median(floor[part])) for ours, floor in rounds]
    value, floor = sorted(pairs, key=lambda pair: pair[0] / pair[1])[len(pairs) // 2]
    return Figure(name=f"own time per turn, {when}", value=value, floor=floor, unit="ms", limit=3)


CALLS = [[("read_file", '{"path": "notes.txt"}')]] * TURNS


async def _ours(folder: Path) -> list[float]:
    with answering(CALLS) as server:
        home = Home(root=folder / "home", base=folder / "home").ensure()
        home.config_file.write_text(
            f"model:\n  default: custom/m\n  base_url: {server.url}\nagent:\n  max_turns: {TURNS + 10}\n"
        )
        home.env_file.write_text(f"CUSTOM_API_KEY={KEY}\n")
        home.env_file.chmod(0o600)
        async with open_runtime(home, Options(attended=False)) as runtime:
            place = Conversation(platform="bench")
            record = await runtime.hermes.open_session(place, runtime.owner, workspace=str(folder))
            await runtime.hermes.submit(
                Inbound(
                    source="bench",
                    source_id="1",
                    principal=runtime.owner,
                    conversation=place,
                    parts=(Text(text="Read it again and again."),),
                    received=0.0,
                ),
                record.id,
            )
            async for _ in runtime.hermes.follow(record.id, 0):
                pass
    return server.gaps


async def _floor(folder: Path) -> list[float]:
    """The same conversation without a harness: read the stream, read the file, send everything again."""
    with answering(CALLS) as server:
        messages: list[dict[str, object]] = [{"role": "user", "content": "Read it again and again."}]
        tools = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]
        headers = {"authorization": f"Bearer {KEY}"}
        async with httpx2.AsyncClient(verify=False, trust_env=False, timeout=None, headers=headers) as client:
            while call := await _reply(client, server.url, messages, tools):
                content = (folder / json.loads(call["arguments"])["path"]).read_text()
                asked = {"id": call["id"], "type": "function", "function": call}
                messages.append({"role": "assistant", "content": None, "tool_calls": [asked]})
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
    return server.gaps


async def _reply(
    client: httpx2.AsyncClient, url: str, messages: list[dict[str, object]], tools: list[dict[str, object]]
) -> dict[str, str]:
    call = {"id": "", "name": "", "arguments": ""}
    body = {"model": "m", "messages": messages, "tools": tools, "stream": True}
    async with client.stream("POST", f"{url}/chat/completions", json=body) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: ") and line != "data: [DONE]":
                _take(call, json.loads(line[6:]))
    return call if call["id"] else {}


def _take(call: dict[str, str], chunk: dict[str, Any]) -> None:
    for choice in chunk.get("choices", ()):
        for part in choice["delta"].get("tool_calls") or ():
            call["id"] = part.get("id") or call["id"]
            call["name"] = part["function"].get("name") or call["name"]
            call["arguments"] += part["function"].get("arguments") or ""
