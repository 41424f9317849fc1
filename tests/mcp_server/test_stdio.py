"""`hermes mcp serve`: the real program over its pipes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from hermes_agent.host.paths import Home
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import counting, settle_home
from tests.cli.shell import PROGRAM, ROOT
from tests.mcp_server.clients import ERAS, said, told
from tests.measured import measured, path_of

FIRST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
pytestmark = pytest.mark.timeout(60)


def variables(home: Home) -> dict[str, str]:
    return {"HERMES_HOME": str(home.root), "PYTHONPATH": path_of(ROOT / "src"), "PATH": "/usr/bin:/bin", **measured()}


@asynccontextmanager
async def settled(folder: Path) -> AsyncIterator[Home]:
    async with serving(openai_model(counting, keys=())) as model:
        yield settle_home(folder / "home", model.url)


@pytest.mark.parametrize("era", ERAS)
async def test_a_program_asks_over_the_pipes(tmp_path: Path, era: str):
    async with settled(tmp_path) as home:
        command = StdioServerParameters(
            command=sys.executable, args=["-c", PROGRAM, "mcp", "serve"], env=variables(home), cwd=str(tmp_path)
        )
        async with Client(stdio_client(command), mode=era) as mcp:
            reply = await said(mcp, "ask", message="Hi")
            sessions = await told(mcp, "conversations_list")

    assert reply.startswith("Reply 1.")
    assert [each["surface"] for each in sessions] == ["cli"]


NOISE = """
import asyncio, os, subprocess, sys
from hermes_agent.mcp_server.stdio import Wire
wire = Wire()
print("noise", flush=True)
os.write(1, b"noise")
subprocess.run(["echo", "noise"])
sys.stdout.write(f"{sys.stdin.read()!r}")
async def talk():
    await wire.write(await anext(wire))
    await wire.flush()
asyncio.run(talk())
"""


def test_what_else_the_process_prints_is_not_for_the_client():
    done = subprocess.run(
        [sys.executable, "-c", NOISE],
        input=b'{"a":1}\nmore\n',
        env={"PYTHONPATH": path_of(ROOT / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=20,
        check=True,
    )

    assert done.stdout == b'{"a":1}\n'
    assert done.stderr.count(b"noise") == 3


async def test_a_client_that_reads_nothing_and_leaves_ends_it(tmp_path: Path):
    async with settled(tmp_path) as home:
        reads, writes = os.pipe()
        words = (sys.executable, "-c", PROGRAM, "mcp", "serve")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *words, env=variables(home), stdin=pipe, stdout=writes, cwd=tmp_path
        )
        os.close(writes)
        assert process.stdin is not None
        lists = [{"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(2, 400)]
        started = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        process.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in (FIRST, started, *lists)))
        process.stdin.close()
        try:
            async with asyncio.timeout(15):
                assert await process.wait() == 0
        finally:
            os.close(reads)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
async def test_it_says_nothing_but_json_and_ends_when_asked(tmp_path: Path, ending: signal.Signals):
    async with settled(tmp_path) as home:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            PROGRAM,
            "mcp",
            "serve",
            env=variables(home),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=tmp_path,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(FIRST).encode() + b"\nno json\n")
        first = json.loads(await process.stdout.readline())
        process.send_signal(ending)
        async with asyncio.timeout(3):
            rest = await process.stdout.read()
            await process.wait()

    assert first["result"]["serverInfo"]["name"] == "hermes"
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules['mcp'] = None; {PROGRAM}", "mcp", "serve"],
        env=variables(Home(root=tmp_path, base=tmp_path)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )

    assert done.returncode
    assert "needs the extra `mcp`: pip install 'hermes-runtime[mcp]'" in done.stderr
    assert done.stdout == ""
