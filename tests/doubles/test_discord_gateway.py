"""The gateway of Discord's double tells a client what it missed, in order, where its session can be resumed."""

import pytest
from aiohttp import ClientSession, web

from tests.doubles.discord_gateway import Gateway
from tests.doubles.serving import served


@pytest.fixture
async def at():
    gateway, application = Gateway(), web.Application()
    application.add_routes([web.get("/gateway", gateway.socket)])
    async with served(application) as url, ClientSession(url) as client, client.ws_connect("/gateway") as socket:
        assert (await socket.receive_json())["op"] == 10
        yield gateway, socket


async def test_who_resumes_is_told_what_came_since(at):
    gateway, socket = at
    for number in range(3):
        await gateway.tell("MESSAGE_CREATE", {"content": str(number)})
    await socket.send_json({"op": 6, "d": {"seq": 2}})

    told = [await socket.receive_json() for _ in range(3)]
    assert [each["t"] for each in told] == ["MESSAGE_CREATE", "MESSAGE_CREATE", "RESUMED"]
    assert [each["d"]["content"] for each in told[:2]] == ["1", "2"]


async def test_a_session_that_it_forgot_is_begun_anew(at):
    gateway, socket = at
    gateway.forgetful = True
    await socket.send_json({"op": 6, "d": {"seq": 1}})
    assert await socket.receive_json() == {"op": 9, "d": False}

    await socket.send_json({"op": 2, "d": {}})
    assert (await socket.receive_json())["t"] == "READY"
    await socket.send_json({"op": 1, "d": 7})
    assert (await socket.receive_json(), gateway.reached) == ({"op": 11}, 7)
