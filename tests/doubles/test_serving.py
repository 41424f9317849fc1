"""An application on loopback answers, or breaks the connection."""

import pytest
from aiohttp import ClientSession, ServerDisconnectedError, web

from tests.doubles.serving import cut, served


async def hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


async def broken(request: web.Request) -> web.Response:
    return cut(request)


async def test_a_client_is_answered_or_cut_off():
    application = web.Application()
    application.add_routes([web.get("/hello", hello), web.get("/broken", broken)])

    async with served(application) as url, ClientSession(url) as client:
        assert await (await client.get("/hello")).text() == "hello"
        with pytest.raises((ServerDisconnectedError, ConnectionError)):
            await client.get("/broken")
