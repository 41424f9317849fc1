"""What comes over a connection that is no request, too large a one, or none: answered or left, over real sockets."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hermes_agent.api.protocol import LARGEST_HEAD, MOST, Connection, most_connections
from hermes_agent.api.server import Listening, listening

HEALTH = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
CLOSED = HEALTH + b"Connection: close\r\n\r\n"


class Hasty(Connection):
    """It waits a moment only, and takes two connections."""

    head_seconds = 0.1
    most = 2


async def echo(scope, receive, send):
    """Answers with what it was sent; `/slow` waits in the middle of it."""
    message = await receive()
    if message["type"] == "http.disconnect":
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    if scope["path"] == "/slow":
        await asyncio.sleep(0.4)
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def wire(kind: type[Connection] = Connection) -> AsyncIterator[Listening]:
    async with listening(echo, "127.0.0.1", 0, kind) as place:
        yield place


async def said(place: Listening, *pieces: bytes, pause: float = 0.0) -> bytes:
    """Everything that comes back until the connection is closed."""
    reader, writer = await asyncio.open_connection(place.host, place.port)
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
    answer = b""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(10):
            answer = await reader.read(1 << 20)
            while more := await reader.read(1 << 20):
                answer += more
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x00garbage\r\n\r\n", b"400"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
        (HEALTH + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", b"400"),
        (HEALTH + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (b"GET /" + b"a" * LARGEST_HEAD + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"431"),
        (HEALTH + b"X: " + b"a" * LARGEST_HEAD + b"\r\n\r\n", b"431"),
        (HEALTH + b"X: a\r\n" * 16_000 + b"\r\n", b"431"),
    ],
)
async def test_what_is_no_request_is_told_so_in_the_shape_of_every_error(sent, status, caplog):
    async with wire() as place:
        answer = await said(place, sent)

    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b'"type":"invalid_request_error"' in answer
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]  # Strangers fill no log.


async def test_headers_that_never_end_are_not_kept():
    async with wire() as place:
        _, writer = await asyncio.open_connection(place.host, place.port)
        writer.write(HEALTH)
        sent = 0
        with contextlib.suppress(ConnectionError):
            for _ in range(10_000):
                writer.write(b"X: " + b"a" * 4096 + b"\r\n")
                await writer.drain()
                sent += 4096
        assert sent < 10_000 * 4096  # The connection was closed long before.
        writer.close()


async def test_many_requests_in_one_breath_are_all_answered_in_order():
    async with wire() as place:
        answer = await said(place, (HEALTH + b"\r\n") * 20 + CLOSED)
    assert answer.count(b"HTTP/1.1 200") == answer.count(b"\r\n\r\nok") == 21


async def test_a_head_that_does_not_arrive_is_not_waited_for():
    async with wire(Hasty) as place:
        slow = await said(place, HEALTH)
        nothing = await said(place)
        second = await said(place, HEALTH + b"\r\n", HEALTH, pause=0.05)

    assert slow.startswith(b"HTTP/1.1 408")
    assert nothing == b""
    assert second.count(b"HTTP/1.1 200") == second.count(b"HTTP/1.1 408") == 1


async def test_an_answer_under_way_is_not_cut_by_what_comes_behind_its_request():
    slow = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with wire(Hasty) as place:
        waited = await said(place, slow + HEALTH)
        broken = await said(place, slow, b"\x00\x00\r\n\r\n", pause=0.1)

    assert waited.index(b"\r\n\r\nok") < waited.index(b"HTTP/1.1 408")
    assert broken.count(b"HTTP/1.1") == 1


async def test_a_body_that_is_broken_is_told_so():
    async with wire() as place:
        answer = await said(place, HEALTH + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
    assert answer.startswith(b"HTTP/1.1 400")


async def test_a_wish_to_speak_something_else_is_passed_over():
    async with wire() as place:
        answer = await said(place, HEALTH + b"Connection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")


async def test_connections_over_the_limit_are_closed_and_the_others_stay():
    async with wire(Hasty) as place:
        held = [await asyncio.open_connection(place.host, place.port) for _ in range(2)]
        await asyncio.sleep(0.02)
        assert await said(place, CLOSED) == b""
        held[0][1].write(CLOSED)
        assert (await held[0][0].read(100)).startswith(b"HTTP/1.1 200")
        for _, writer in held:
            writer.close()
    assert 2 < most_connections() <= MOST


async def test_who_is_answered_and_goes_on_with_a_body_is_left():
    async with wire(Hasty) as place:
        reader, writer = await asyncio.open_connection(place.host, place.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nx")
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")

        for _ in range(100):
            writer.write(b"x")  # It is only noted where nobody is there any more.
            await asyncio.sleep(0.02)
        assert reader.at_eof()
        writer.close()
