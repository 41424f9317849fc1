"""Sign-in of a person to an MCP server: where the browser comes back to this machine, or the person pastes where it
led."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

import msgspec

from hermes_agent.app.mcp.source import McpTools, SigningIn
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.host.late import late
from hermes_agent.host.tasks import spawn
from hermes_agent.tools.mcp.settings import Server

PERSON = "hermes_agent.tools.mcp.oauth:Person"
REVOKE = "hermes_agent.tools.mcp.oauth:revoke"
SECONDS = 600.0
"""How long a person may take."""
LONGEST = 20_000
PAGE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
    b"Hermes has the answer. You may close this page.\n"
)
Answer: TypeAlias = tuple[str, str | None, str | None]
Show: TypeAlias = Callable[[str], Awaitable[None]]
Paste: TypeAlias = Callable[[], Awaitable[str]]


async def sign_in(source: McpTools, server: Server, workspace: str, show: Show, paste: Paste | None = None) -> None:
    """Sign in to a server; `show` gets the address to open, `paste` (where the browser is on another machine) gives the
    address where it ended. Raises `HermesError`."""
    if server.settings.auth != "oauth":
        how = f"`hermes mcp configure {server.name} auth oauth`"
        raise ConfigError(f"{server.name} wants no sign-in by its settings: {how}.")
    patient = replace(server, settings=replace(server.settings, connect_timeout=SECONDS))
    async with _redirected(_port(source, server)) as (port, answer):
        waited = _pasted(paste) if paste else answer
        redirect = f"http://127.0.0.1:{port}/callback"
        source.connector.persons[server.name] = late(PERSON)(redirect=redirect, show=show, answer=waited)
        try:
            await source.servers.retry(patient, workspace)
        finally:
            del source.connector.persons[server.name]


async def begin(source: McpTools, server: Server, workspace: str) -> str:
    """Begin to sign in; the address to open, empty where nothing is needed. Raises `HermesError`."""
    loop = asyncio.get_running_loop()
    shown: asyncio.Future[str] = loop.create_future()
    pasted: asyncio.Future[str] = loop.create_future()

    async def show(address: str) -> None:
        shown.set_result(address)

    async def paste() -> str:
        return await pasted

    if before := source.signing_in.pop(server.name, None):
        before.task.cancel()
        await asyncio.wait((before.task,))
    task = spawn(sign_in(source, server, workspace, show, paste), name=f"sign-in to {server.name}")
    await asyncio.wait((task, shown), return_when=asyncio.FIRST_COMPLETED)
    if not shown.done():
        await task
        return ""
    source.signing_in[server.name] = SigningIn(task=task, address=pasted)
    return shown.result()


async def end(source: McpTools, server: Server, address: str) -> None:
    """End a sign-in that waits. Raises `HermesError`."""
    waiting = source.signing_in.pop(server.name, None)
    if waiting is None or waiting.task.done():
        raise HermesError(f"No sign-in to {server.name} waits: `/mcp login {server.name}` begins one.")
    waiting.address.set_result(address)
    await waiting.task


async def sign_out(source: McpTools, server: Server, *, client: bool = False) -> bool:
    """Forget the tokens of a server, and with `client` the registration; whether its issuer revoked them."""
    revoked: bool = await late(REVOKE)(source.connector.logins, server.settings.url)
    await source.connector.logins.forget(server.settings.url, client=client)
    return revoked


def _port(source: McpTools, server: Server) -> int:
    """The port of the registered redirect; 0 for any."""
    text = source.connector.logins.get(server.settings.url).client
    found = (msgspec.json.decode(text).get("redirect_uris") or [""]) if text else [""]
    return urlsplit(str(found[0])).port or 0


@asynccontextmanager
async def _redirected(port: int) -> AsyncIterator[tuple[int, Callable[[], Awaitable[Answer]]]]:
    """Context manager: the port where the browser comes back, and what waits for it."""
    got: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline())[:LONGEST].decode("latin-1")
        target = line.split(" ")[1] if line.count(" ") == 2 else ""
        if urlsplit(target).path == "/callback" and not got.done():
            try:
                got.set_result(_answer(target))
            except HermesError as error:
                got.set_exception(error)
        writer.write(PAGE)
        await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(serve, "127.0.0.1", port)
    except OSError as error:
        how = "`hermes mcp reauth` registers anew"
        raise HermesError(f"The port {port} of the registered sign-in is in use here: {how}.") from error
    async with server:
        yield server.sockets[0].getsockname()[1], lambda: asyncio.shield(got)


def _pasted(paste: Paste) -> Callable[[], Awaitable[Answer]]:
    async def wait() -> Answer:
        return _answer((await paste()).strip())

    return wait


def _answer(address: str) -> Answer:
    """What an issuer says in the address to which it leads the browser. Raises `HermesError`."""
    given = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    if "code" not in given:
        why = given.get("error_description") or given.get("error") or "it gave no code"
        raise HermesError(f"The sign-in failed: {why[:300]}.")
    return given["code"], given.get("state"), given.get("iss")
