"""Tools of MCP servers at addresses, over streamable HTTP and the older SSE."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from hermes_agent.core.errors import ConfigError, ToolError
from hermes_agent.host.inbound.listener import listen
from hermes_agent.host.inbound.message import Request, Response
from hermes_agent.tools.mcp.settings import McpServerSettings
from tests.app.mcp.calling import MODERN, calling
from tests.measured import measured


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def served(kind: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The tests' own server at an address of this machine."""
    command = [sys.executable, str(MODERN), kind, str(port)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env={**os.environ, **measured()}, stdout=quiet, stderr=subprocess.PIPE) as running:
        try:
            assert running.stderr is not None
            while b"running on" not in running.stderr.readline():
                assert running.poll() is None
            yield running
        finally:
            running.kill()


@pytest.mark.parametrize(("kind", "path"), [("http", "mcp"), ("sse", "sse")])
async def test_tools_at_an_address_are_called(tmp_path: Path, kind: str, path: str):
    port = free_port()
    settings = McpServerSettings(url=f"http://127.0.0.1:{port}/{path}", transport=kind)
    with served(kind, port):
        async with calling(tmp_path, {"far": settings}) as call:
            assert await call("mcp__far__add", a=2, b=3) == "5"
            assert await call("mcp_resource", action="read", server="far", uri="note://one") == "the note"
            context = call.context(answers=['{"name": "Ann"}'])
            assert await call("mcp__far__who", context) == "accept name='Ann' age=7"


async def test_a_server_that_comes_back_is_called_again(tmp_path: Path):
    port = free_port()
    settings = McpServerSettings(url=f"http://127.0.0.1:{port}/mcp", trust="hints")
    async with calling(tmp_path, {"far": settings}, look=False) as call:
        with served("http", port):
            await call.source.look("")
            assert await call("mcp__far__add", a=2, b=3) == "5"
        with pytest.raises(ToolError):
            await call("mcp__far__add", a=2, b=3)
        with served("http", port):
            await call.source.servers.retry(call.source.servers.servers["far"], "")
            assert await call("mcp__far__add", a=2, b=3) == "5"


async def test_an_address_where_nobody_listens_is_a_sentence(tmp_path: Path):
    settings = McpServerSettings(url=f"http://127.0.0.1:{free_port()}/mcp")
    async with calling(tmp_path, {"far": settings}, look=False) as call:
        with pytest.raises(ToolError, match="The MCP server far cannot be reached"):
            await call("mcp_resource", action="list", server="far")


async def test_a_redirect_to_another_origin_is_not_followed(tmp_path: Path):
    got: list[bytes] = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.read(10_000))
        writer.close()

    other = await asyncio.start_server(elsewhere, "127.0.0.1", 0)
    target = other.sockets[0].getsockname()[1]

    async def redirecting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10_000)
        answer = f"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:{target}/mcp\r\nContent-Length: 0\r\n\r\n"
        writer.write(answer.encode())
        await writer.drain()
        writer.close()

    first = await asyncio.start_server(redirecting, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{first.sockets[0].getsockname()[1]}/mcp"
    settings = McpServerSettings(url=url, headers={"Authorization": "Bearer t"})
    async with first, other, calling(tmp_path, {"far": settings}, look=False) as call:
        with pytest.raises(ToolError, match=r"Redirect to .* not followed"):
            await call("mcp_resource", action="list", server="far")

    assert got == []


async def test_signing_in_over_plain_http_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="signing in needs https"):
        async with calling(tmp_path, {"far": McpServerSettings(url="http://x.test/mcp", auth="oauth")}):
            pass


@asynccontextmanager
async def answering(call: Callable[[dict], Response]) -> AsyncIterator[str]:
    """The address of a server of the older protocol whose answers to calls are these."""

    async def handle(request: Request) -> Response:
        if request.method != "POST":
            return Response(status=405)
        message = json.loads(b"".join([piece async for piece in request.pieces]))
        if "id" not in message or "result" in message:
            return Response(status=202)
        match message["method"]:
            case "initialize":
                info = {"name": "raw", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": [{"name": "huge", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                return call(message)
            case _:
                error = {"code": -32601, "message": "Method not found"}
                return answer_of({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return answer_of({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async with listen(handle) as place:
        yield f"{place.url}/mcp"


def answer_of(message: dict) -> Response:
    return Response(headers={"content-type": "application/json"}, body=json.dumps(message).encode())


async def endless(head: bytes, sent: list[int]) -> AsyncGenerator[bytes, None]:
    yield head
    for _ in range(100):
        sent.append(1)
        yield b"x" * (1 << 20)


@pytest.mark.parametrize(
    ("kind", "why"), [("application/json", "longer than 16 MB"), ("text/event-stream", "exceeded the 16777216 byte")]
)
async def test_an_answer_without_end_is_given_up(tmp_path: Path, kind: str, why: str):
    sent: list[int] = []
    head = b'{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"'
    head = head if kind == "application/json" else b"event: message\ndata: " + head

    def huge(_: dict) -> Response:
        return Response(headers={"content-type": kind}, body=endless(head, sent))

    async with (
        answering(huge) as url,
        calling(tmp_path, {"far": McpServerSettings(url=url, timeout=20, trust="hints")}) as call,
    ):
        with pytest.raises(ToolError, match=why):
            await asyncio.wait_for(call("mcp__far__huge"), 15)

    assert sum(sent) < 40


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_large_answer_arrives_whole(tmp_path: Path, kind: str):
    def large(message: dict) -> Response:
        result = {"content": [{"type": "text", "text": "x" * (5 << 20)}]}
        found = answer_of({"jsonrpc": "2.0", "id": message["id"], "result": result})
        if kind == "application/json":
            return found
        return Response(headers={"content-type": kind}, body=b"event: message\ndata: %b\n\n" % found.body)

    async with answering(large) as url, calling(tmp_path, {"far": McpServerSettings(url=url)}) as call:
        assert len(await call("mcp__far__huge")) == 5 << 20


async def test_a_small_answer_that_unpacks_to_a_large_one_is_refused(tmp_path: Path):
    body = gzip.compress(b"x" * (64 << 20))

    def packed(_: dict) -> Response:
        return Response(headers={"content-type": "application/json", "content-encoding": "gzip"}, body=body)

    async with (
        answering(packed) as url,
        calling(tmp_path, {"far": McpServerSettings(url=url, timeout=20)}) as call,
    ):
        with pytest.raises(ToolError, match="compressed"):
            await asyncio.wait_for(call("mcp__far__huge"), 15)
