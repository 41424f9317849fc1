"""A key that is revoked: what it holds open ends, over the API and over MCP, and nobody else's does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hermes_agent.api.keys import Keys
from hermes_agent.providers.demo.script import Answer, Pace, Say
from hermes_agent.testing.scripted import Script
from tests.api.served import MEMBER_KEY, OTHER_KEY, Server, served
from tests.mcp_server.test_http import FIRST, META, NEWER, TAKES

SLOW = Answer(pieces=(Say("One two three."),), pace=Pace(first=30.0))
SECONDS = 3.0


def slow(_: object) -> Answer:
    return SLOW


@asynccontextmanager
async def opened(folder: Path, script: Script = slow) -> AsyncIterator[Server]:
    async with served(folder, script) as server:
        yield server


def revoke(server: Server, *users: str) -> None:
    server.keys.replace(Keys(hashes=tuple(each for each in server.keys.hashes if each[1].user not in users)))


async def last(server: Server, path: str, body: object, headers: Mapping[str, str], key: str) -> bytes:
    """What came until the connection ended; a failure of it is an end as well."""
    found = b""
    given = {"authorization": f"Bearer {key}", **headers}
    method = "GET" if body is None else "POST"
    try:
        async with server.client.stream(method, path, json=body, headers=given, timeout=60) as stream:
            async for piece in stream.aiter_raw():
                found += piece
    except httpx2.TransportError:
        pass
    return found


def call(name: str, **arguments: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


async def older(server: Server, key: str) -> dict[str, str]:
    """The headers of a session of the older protocol."""
    first = await server.ask("POST", "/mcp", FIRST, key=key, headers=TAKES)
    return {**TAKES, "mcp-session-id": first.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}


async def cursor(server: Server, key: str, headers: Mapping[str, str]) -> str:
    found = await server.ask("POST", "/mcp", call("events_poll"), key=key, headers=headers)
    return found.text.partition('cursor\\":\\"')[2].partition("\\")[0]


async def request(server: Server, how: str, key: str) -> tuple[str, object, Mapping[str, str]]:
    """The path, body and headers of a request that stays open for long."""
    said = {"messages": [{"role": "user", "content": "Hi"}]}
    match how:
        case "completion" | "stream":
            return "/v1/chat/completions", {**said, "stream": how == "stream"}, {}
        case "events":
            run = (await server.ask("POST", "/v1/runs", {"input": "Hi"}, key=key)).json()
            return f"/v1/runs/{run['id']}/events", None, {}
        case "newer ask":
            asking = call("ask", message="Hi")
            asking["params"]["_meta"] = META
            return "/mcp", asking, NEWER
    headers = await older(server, key)
    bodies = {"mcp stream": None, "ask": call("ask", message="Hi")}
    if how == "events_wait":
        return "/mcp", call(how, cursor=await cursor(server, key, headers), seconds=300), headers
    return "/mcp", bodies[how], headers


async def held(server: Server, how: str, key: str) -> asyncio.Task[bytes]:
    path, body, headers = await request(server, how, key)
    return asyncio.create_task(last(server, path, body, headers, key))


HELD = ("completion", "stream", "events", "mcp stream", "events_wait", "ask", "newer ask")


@pytest.mark.parametrize("how", HELD)
async def test_what_a_revoked_key_holds_open_ends(tmp_path: Path, how: str):
    async with opened(tmp_path) as server:
        theirs, others = await held(server, how, MEMBER_KEY), await held(server, how, OTHER_KEY)
        await asyncio.wait((theirs, others), timeout=0.5)
        before = theirs.done(), others.done()
        revoke(server, "anna")
        await asyncio.wait((theirs,), timeout=SECONDS)
        after = theirs.done(), others.done()
        refused = await server.ask("GET", "/v1/sessions", key=MEMBER_KEY)
        revoke(server, "bert")
        await asyncio.wait((others,), timeout=SECONDS)

    assert before == (False, False)
    assert after == (True, False)
    assert refused.status_code == 401


async def test_the_run_that_a_revoked_key_asked_for_over_mcp_stops(tmp_path: Path):
    async with opened(tmp_path) as server:
        asking = await held(server, "ask", MEMBER_KEY)
        async with asyncio.timeout(5):
            while not server.model.exchanges:
                await asyncio.sleep(0.02)
        session = (await server.runtime.store.sessions.list(limit=1))[0].id
        revoke(server, "anna")
        async with asyncio.timeout(SECONDS):
            while server.runtime.hermes.runs(session):
                await asyncio.sleep(0.02)
        await asking
