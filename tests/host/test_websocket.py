"""A WebSocket ends with the reason, and hides no failure of whoever uses it."""

import pytest
from aiohttp import web

from hermes_agent.core.errors import ConfigError
from hermes_agent.host.http import Http
from hermes_agent.host.websocket import SocketClosed, require, websocket
from tests.doubles.serving import served


async def echo(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.data == '{"close": true}':
            await socket.close(code=4004, message=b"no")
        elif message.data == '{"cut": true}':
            assert request.transport
            request.transport.abort()
        elif message.data == '{"odd": true}':
            await socket.send_str("[1]")
            await socket.send_str("{")
        else:
            await socket.send_str(message.data)
    return socket


@pytest.fixture
async def http():
    made = Http()
    yield made
    await made.close()


@pytest.fixture
async def url():
    application = web.Application()
    application.add_routes([web.get("/", echo)])
    async with served(application) as url:
        yield url.replace("http", "ws")


async def test_what_is_sent_comes_back(http, url):
    async with websocket(http, f"{url}/") as socket:
        await socket.send({"a": 1})
        assert await socket.receive() == {"a": 1}


async def test_what_is_no_object_is_an_empty_one(http, url):
    async with websocket(http, f"{url}/") as socket:
        await socket.send({"odd": True})
        assert await socket.receive() == {}
        assert await socket.receive() == {}


async def test_a_closed_connection_says_why(http, url):
    with pytest.raises(SocketClosed, match="4004 no") as closed:
        async with websocket(http, f"{url}/") as socket:
            await socket.send({"close": True})
            await socket.receive()

    assert closed.value.code == 4004


async def test_a_cut_connection_is_closed(http, url):
    with pytest.raises(SocketClosed):
        async with websocket(http, f"{url}/") as socket:
            await socket.send({"cut": True})
            await socket.receive()


async def test_a_failure_of_the_user_comes_out_as_it_is(http, url):
    with pytest.raises(OSError, match="the disk is full"):
        async with websocket(http, f"{url}/"):
            raise OSError("the disk is full")


@pytest.mark.parametrize("bad", ["ws://127.0.0.1:1/", "URL/none"])
async def test_what_cannot_be_opened_is_closed(http, url, bad):
    with pytest.raises(SocketClosed):
        async with websocket(http, bad.replace("URL", url)):
            pass


def test_the_library_is_there():
    require("slack")
    assert ConfigError
