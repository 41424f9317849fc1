"""Every connection that is accepted or made sends small pieces at once: without TCP_NODELAY the end of an answer waits
up to 40 ms for the peer to confirm its beginning."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from aiohttp import web

from hermes_agent.gateway.email.mailbox import Address, Login, Mailbox
from hermes_agent.gateway.email.sending import Post
from hermes_agent.host.http import Http
from hermes_agent.host.inbound.listener import LOOPBACK, listen, serve
from hermes_agent.host.inbound.message import Request, Response
from hermes_agent.host.websocket import websocket
from hermes_agent.sandbox.backends.ssh import Machine
from tests.doubles.email import mail_platform
from tests.doubles.serving import served
from tests.host.inbound.test_connection import HEALTH, echo
from tests.sandbox.sshd import NoServer, server
from tests.sockets import connections

Way = Callable[[], AbstractAsyncContextManager[object]]


@asynccontextmanager
async def asked(host: str, port: int) -> AsyncIterator[None]:
    """A connection on which one request was answered, and which is kept."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(HEALTH + b"\r\n")
    assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
    yield
    writer.close()


async def ok(_: Request) -> Response:
    return Response(body=b"ok")


@asynccontextmanager
async def of_the_api(host: str = LOOPBACK) -> AsyncIterator[None]:
    async with listen(echo, host) as place, asked(place.host, place.port):
        yield


@asynccontextmanager
async def of_the_api_over_ipv6() -> AsyncIterator[None]:
    async with of_the_api("::1"):
        yield


@asynccontextmanager
async def of_the_small_server() -> AsyncIterator[None]:
    async with serve(ok) as place, asked(LOOPBACK, place.port):
        yield


@asynccontextmanager
async def to_a_web_server() -> AsyncIterator[None]:
    http = Http()
    async with serve(ok) as place:
        assert (await http.client(place.url).get(place.url)).text == "ok"
        yield
        await http.close()


async def greet(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    await socket.send_str("{}")
    await socket.receive()
    return socket


@asynccontextmanager
async def to_a_websocket() -> AsyncIterator[None]:
    application, http = web.Application(), Http()
    application.add_routes([web.get("/", greet)])
    async with served(application) as url, websocket(http, f"{url.replace('http', 'ws')}/") as socket:
        await socket.receive()
        yield
    await http.close()


@asynccontextmanager
async def to_a_mailbox() -> AsyncIterator[None]:
    async with mail_platform() as platform:
        address = Address(host=LOOPBACK, port=platform.imap_port, security="none")
        box = Mailbox(address, Login(user="u", password="secret", folder="INBOX"))
        await box.open()
        yield
        await box.close()


@asynccontextmanager
async def to_a_post_office() -> AsyncIterator[None]:
    async with mail_platform() as platform:
        address = Address(host=LOOPBACK, port=platform.smtp_port, security="none")
        async with Post(address=address, user="u", password="secret", own="hermes@a.test")._connected():
            yield


@asynccontextmanager
async def to_another_machine() -> AsyncIterator[None]:
    try:
        machine = Machine(server(), {}, "")
    except NoServer as reason:
        pytest.skip(f"no ssh server here: {reason}")
    await machine.connected()
    yield
    await machine.close()


WAYS: tuple[Way, ...] = (
    of_the_api,
    of_the_api_over_ipv6,
    of_the_small_server,
    to_a_web_server,
    to_a_websocket,
    to_a_mailbox,
    to_a_post_office,
    to_another_machine,
)


@pytest.mark.parametrize("way", WAYS)
async def test_a_small_write_leaves_at_once(way: Way):
    before = connections()

    async with way():
        made = {ends: at_once for ends, at_once in connections().items() if ends not in before}

    assert made
    assert all(made.values()), made
