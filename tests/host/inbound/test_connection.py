"""What comes over a connection that is no request, too large a one, or none: answered or left, over real sockets."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator

import pytest

from hermes_agent.host.inbound.connection import LARGEST_HEAD, MOST, most_connections
from hermes_agent.host.inbound.listener import Listening, listen
from hermes_agent.host.inbound.message import Policy, Request, Response

HEALTH = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
CLOSED = HEALTH + b"Connection: close\r\n\r\n"


HASTY = Policy(head_seconds=0.1, most=2)


async def echo(request: Request) -> Response:
    """Answers; `/slow` after a while."""
    if request.path == "/slow":
        await asyncio.sleep(0.4)
    return Response(body=b"ok")


async def whole(request: Request) -> Response:
    """Answers with the body."""
    return Response(body=b"".join([piece async for piece in request.pieces]))


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
async def test_what_is_no_request_is_told_so(sent, status, caplog):
    async with listen(echo) as place:
        answer = await said(place, sent)

    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b"connection: close\r\n" in answer
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]  # Strangers fill no log.


async def test_headers_that_never_end_are_not_kept():
    async with listen(echo) as place:
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
    async with listen(echo) as place:
        answer = await said(place, (HEALTH + b"\r\n") * 20 + CLOSED)
    assert answer.count(b"HTTP/1.1 200") == answer.count(b"\r\n\r\nok") == 21


async def test_a_head_that_does_not_arrive_is_not_waited_for():
    async with listen(echo, policy=HASTY) as place:
        slow = await said(place, HEALTH)
        nothing = await said(place)
        second = await said(place, HEALTH + b"\r\n", HEALTH, pause=0.05)

    assert slow.startswith(b"HTTP/1.1 408")
    assert nothing == b""
    assert second.count(b"HTTP/1.1 200") == second.count(b"HTTP/1.1 408") == 1


async def test_an_answer_under_way_is_not_cut_by_what_comes_behind_its_request():
    slow = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with listen(echo, policy=HASTY) as place:
        waited = await said(place, slow + HEALTH)
        broken = await said(place, slow, b"\x00\x00\r\n\r\n", pause=0.1)

    assert waited.index(b"\r\n\r\nok") < waited.index(b"HTTP/1.1 408")
    assert broken.index(b"\r\n\r\nok") < broken.index(b"HTTP/1.1 400")


async def test_a_body_that_is_broken_is_told_so():
    async with listen(whole) as place:
        answer = await said(place, HEALTH + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
    assert answer.startswith(b"HTTP/1.1 400")


async def test_a_wish_to_speak_something_else_is_passed_over():
    async with listen(echo) as place:
        answer = await said(place, HEALTH + b"Connection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")


async def test_connections_over_the_limit_are_closed_and_the_others_stay():
    async with listen(echo, policy=HASTY) as place:
        held = [await asyncio.open_connection(place.host, place.port) for _ in range(2)]
        await asyncio.sleep(0.02)
        assert await said(place, CLOSED) == b""
        held[0][1].write(CLOSED)
        assert (await held[0][0].read(100)).startswith(b"HTTP/1.1 200")
        for _, writer in held:
            writer.close()
    assert 2 < most_connections() <= MOST


async def test_who_is_answered_and_goes_on_with_a_body_is_left():
    async with listen(echo, policy=HASTY) as place:
        reader, writer = await asyncio.open_connection(place.host, place.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nx")
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")

        for _ in range(100):
            writer.write(b"x")  # It is only noted where nobody is there any more.
            await asyncio.sleep(0.02)
        assert reader.at_eof() or reader.exception() is not None
        writer.close()


async def test_a_body_that_nobody_reads_makes_its_sender_wait():
    async def deaf(request: Request) -> Response:
        await request.left.wait()
        return Response()

    async def send(writer: asyncio.StreamWriter) -> None:
        for _ in range(1_000):
            writer.write(b"x" * 100_000)
            await writer.drain()

    async with listen(deaf) as place:
        _, writer = await asyncio.open_connection(place.host, place.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(send(writer), 0.3)
        writer.transport.abort()


async def test_a_body_is_read_whole_however_it_comes():
    chunked = HEALTH.replace(b"GET", b"POST") + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    async with listen(whole) as place:
        answer = await said(place, chunked, *[b"5\r\nhello\r\n"] * 3, b"0\r\n\r\n", pause=0.01)
        large = HEALTH + b"Content-Length: 1000000\r\nConnection: close\r\n\r\n" + b"x" * 1_000_000
        assert (await said(place, large)).endswith(b"\r\n\r\n" + b"x" * 1_000_000)
    assert answer.endswith(b"\r\n\r\nhellohellohello")


async def test_an_older_client_gets_a_stream_that_ends_with_its_connection():
    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"one"
        yield b"two"

    async def stream(_: Request) -> Response:
        return Response(body=pieces())

    async with listen(stream) as place:
        old = await said(place, b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        new = await said(place, CLOSED)
    assert old.endswith(b"\r\n\r\nonetwo")
    assert new.endswith(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")


async def test_who_asks_for_the_head_alone_gets_no_body():
    async with listen(echo) as place:
        answer = await said(place, CLOSED.replace(b"GET", b"HEAD"))
    assert b"content-length: 2\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


async def test_an_answer_under_way_is_waited_for_at_the_end():
    async with listen(echo, policy=Policy(drain_seconds=5)) as place:
        asking = asyncio.create_task(said(place, b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        await asyncio.sleep(0.1)
    answer = await asking
    assert answer.endswith(b"\r\n\r\nok")
    assert b"connection: close" in answer


async def test_a_header_is_what_stands_between_the_blanks():
    async def shown(request: Request) -> Response:
        return Response(body=request.headers["x-name"].encode())

    async with listen(shown) as place:
        answer = await said(place, HEALTH + b"X-Name:  \t ask \t\r\nConnection: close\r\n\r\n")

    assert answer.endswith(b"\r\nask")
