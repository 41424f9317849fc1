"""The official SDK's client on our server: over the API's address, in both generations of the protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from hermes_agent.testing.scripted import Script
from tests.api.served import OWNER_KEY, Server, served

OLDER, NEWER = "legacy", "auto"
ERAS = (OLDER, NEWER)


@asynccontextmanager
async def client(url: str, era: str = NEWER, key: str = OWNER_KEY, **more: object) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=20) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=era, **more) as found,
    ):
        yield found


@asynccontextmanager
async def connected(
    folder: Path, script: Script, era: str = NEWER, *, more: str = "", key: str = OWNER_KEY, **options: object
) -> AsyncIterator[tuple[Server, Client]]:
    async with served(folder, script, more=more) as server, client(server.url, era, key, **options) as found:
        yield server, found


async def said(client: Client, name: str, /, **arguments: object) -> str:
    result = await client.call_tool(name, arguments)
    text = "\n".join(block.text for block in result.content if block.type == "text")
    assert not result.is_error, text
    return text


async def told(client: Client, name: str, /, **arguments: object) -> object:
    return json.loads(await said(client, name, **arguments))


async def failed(client: Client, name: str, /, **arguments: object) -> str:
    result = await client.call_tool(name, arguments)
    assert result.is_error, result
    return result.content[0].text


async def names_of(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}
