"""Tools of MCP servers at addresses, over streamable HTTP and the older SSE."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_agent.core.errors import ConfigError, ToolError
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
            assert await call("mcp_read", server="far", uri="note://one") == "the note"
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
        with pytest.raises(ToolError, match="The MCP server far has been away for"):
            await call("mcp_resources", server="far")


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
            await call("mcp_resources", server="far")

    assert got == []


async def test_signing_in_over_plain_http_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="signing in needs https"):
        async with calling(tmp_path, {"far": McpServerSettings(url="http://x.test/mcp", auth="oauth")}):
            pass
