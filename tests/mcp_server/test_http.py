"""The address `/mcp`: who gets in, what ends a stream, and what loads when."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes_agent.mcp_server.http import MOST_SESSIONS
from hermes_agent.providers.demo.script import Answer, Pace, Say
from tests.api.served import MEMBER_KEY, OWNER_KEY, Server, served
from tests.app.place import counting
from tests.mcp_server.clients import OLDER, client

TAKES = {"accept": "application/json, text/event-stream"}
FIRST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
NEWER = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "ask", **TAKES}


@pytest.mark.parametrize(
    ("key", "headers", "status"),
    [
        ("", TAKES, 401),
        ("wrong-key-0123456789", TAKES, 401),
        (OWNER_KEY, {**TAKES, "host": "evil.example"}, 421),
        (OWNER_KEY, {**TAKES, "origin": "https://evil.example"}, 403),
        (OWNER_KEY, TAKES, 200),
    ],
)
async def test_only_keys_and_own_names_are_let_in(tmp_path: Path, key: str, headers: dict[str, str], status: int):
    async with served(tmp_path, counting) as server:
        found = await server.ask("POST", "/mcp", FIRST, key=key, headers=headers)

    assert found.status_code == status, found.text


async def test_a_session_belongs_to_the_key_that_began_it(tmp_path: Path):
    async with served(tmp_path, counting) as server:
        mine = (await server.ask("POST", "/mcp", FIRST, headers=TAKES)).headers["mcp-session-id"]
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        headers = {**TAKES, "mcp-session-id": mine, "mcp-protocol-version": "2025-11-25"}
        statuses = [
            (await server.ask("POST", "/mcp", listing, key=key, headers=headers)).status_code
            for key in (MEMBER_KEY, OWNER_KEY)
        ]

    assert statuses == [404, 200]


async def test_a_request_that_is_too_large_is_refused(tmp_path: Path):
    async with served(tmp_path, counting, api="  max_body_mb: 0.01\n") as server:
        large = await server.ask("POST", "/mcp", {**FIRST, "more": "x" * 20_000}, headers=TAKES)
        fine = await server.ask("POST", "/mcp", FIRST, headers=TAKES)
        none = await server.client.request(
            "POST", "/mcp", content=b"{", headers={**TAKES, "authorization": f"Bearer {OWNER_KEY}"}
        )

    assert (large.status_code, fine.status_code) == (413, 200)
    assert 400 <= none.status_code < 500


async def test_open_streams_end_with_the_server(tmp_path: Path):
    async with served(tmp_path, counting) as server, client(server.url, OLDER) as mcp:
        await mcp.list_tools()  # The client keeps a stream open, for what comes by itself.
        began = time.monotonic()

    assert time.monotonic() - began < 3


async def test_a_client_that_leaves_stops_its_run(tmp_path: Path):
    slow = Answer(pieces=(Say("One two three."),), pace=Pace(first=10.0))
    call = {"name": "ask", "arguments": {"message": "Hi"}, "_meta": {**META, "progressToken": 1}}
    async with served(tmp_path, lambda _: slow) as server:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        headers = {"authorization": f"Bearer {OWNER_KEY}", **NEWER}
        async with server.client.stream("POST", "/mcp", json=body, headers=headers) as stream:
            assert stream.status_code == 200, await stream.aread()
            session = await begun(server)
        async with asyncio.timeout(3):
            while server.runtime.hermes.runs(session):
                await asyncio.sleep(0.02)
        view = await server.runtime.hermes.view(session)

    assert not view.running


async def test_the_session_used_least_recently_makes_room_for_a_new_one(tmp_path: Path):
    async def listing(session: str) -> int:
        headers = {**TAKES, "mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        return (await server.ask("POST", "/mcp", body, headers=headers)).status_code

    async with served(tmp_path, counting) as server:
        opened = [await server.ask("POST", "/mcp", FIRST, headers=TAKES) for _ in range(MOST_SESSIONS)]
        first, second, *_ = [each.headers["mcp-session-id"] for each in opened]
        used = await listing(first)
        more = await server.ask("POST", "/mcp", FIRST, headers=TAKES)
        after = [await listing(each) for each in (first, second, more.headers["mcp-session-id"])]

    assert [used, more.status_code] == [200, 200]
    assert after == [200, 404, 200]


async def begun(server: Server) -> str:
    async with asyncio.timeout(5):
        while not server.model.exchanges:
            await asyncio.sleep(0.02)
    return (await server.runtime.store.sessions.list(limit=1))[0].id


def test_serving_the_api_loads_no_mcp():
    code = "import sys, hermes_agent.api.serve, hermes_agent.cli.commands.mcp; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)

    assert done.stdout.strip() == "False"


async def test_without_the_extra_the_address_says_how_to_get_it(tmp_path: Path):
    code = """
import asyncio, sys
from pathlib import Path
sys.modules["mcp"] = None
from tests.api.served import served
from tests.app.place import counting

async def main():
    async with served(Path(sys.argv[1]), counting) as server:
        answer = await server.ask("POST", "/mcp", {})
        print(answer.status_code, answer.text)

asyncio.run(main())
"""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )

    assert done.stdout.startswith("501 ")
    assert "needs the extra `mcp`" in done.stdout
