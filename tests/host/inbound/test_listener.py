"""The loopback server, spoken to by a real client over real sockets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress

import httpx2
import pytest

from hermes_agent.host.inbound.listener import serve, serve_in_thread
from hermes_agent.host.inbound.message import Cut, Request, Response


async def echo(request: Request) -> Response:
    return Response(headers={"x-method": request.method, "x-path": request.path}, body=request.body)


async def test_a_request_is_answered_with_what_the_handler_gives():
    async with serve(echo) as server, httpx2.AsyncClient() as client:
        reply = await client.post(f"{server.url}/some/where?x=1", content=b"hello")

    assert (reply.status_code, reply.content, reply.headers["x-path"]) == (200, b"hello", "/some/where")


async def test_one_connection_carries_many_requests():
    async with serve(echo) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for body in (b"one", b"two", b"six"):
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n" + body)
            answer = await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(3)

            assert answer.endswith(body)
        writer.close()


async def test_a_streamed_body_arrives_piece_by_piece():
    asked_for_more = asyncio.Event()

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"first"
        await asked_for_more.wait()
        yield b"second"

    async def handler(_: Request) -> Response:
        return Response(body=pieces())

    async with serve(handler) as server, httpx2.AsyncClient() as client, client.stream("GET", server.url) as reply:
        arriving = reply.aiter_raw()
        first = await anext(arriving)
        asked_for_more.set()
        second = await anext(arriving)

    assert (first, second) == (b"first", b"second")


async def test_a_generator_is_closed_when_its_reader_leaves():
    closed = asyncio.Event()

    async def endless() -> AsyncGenerator[bytes, None]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def handler(_: Request) -> Response:
        return Response(body=endless())

    async with serve(handler) as server, httpx2.AsyncClient() as client:
        async with client.stream("GET", server.url) as reply:
            await anext(reply.aiter_raw())
        async with asyncio.timeout(5):
            await closed.wait()


async def test_a_handler_is_cancelled_when_its_client_leaves():
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def handler(_: Request) -> Response:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return Response()

    async with serve(handler) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await began.wait()
        writer.close()
        async with asyncio.timeout(5):
            await cancelled.wait()


@pytest.mark.parametrize("reset", [True, False])
async def test_a_cut_ends_the_connection_in_the_middle(reset):
    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"first"
        raise Cut(reset=reset)

    async def handler(_: Request) -> Response:
        return Response(body=pieces())

    async with serve(handler) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"first\r\n")

        if reset:
            with pytest.raises(ConnectionResetError):
                await reader.read()
        else:
            assert await reader.read() == b""
        writer.close()


async def test_the_end_of_the_block_cuts_what_is_still_open():
    async def handler(_: Request) -> Response:
        await asyncio.Event().wait()
        return Response()

    async with asyncio.timeout(5):
        async with serve(handler) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await asyncio.sleep(0)
        with pytest.raises(OSError, match=r"refused|failed"):
            await asyncio.open_connection("127.0.0.1", server.port)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()


@pytest.mark.parametrize("rounds", range(8))
async def test_a_connection_that_comes_while_the_block_ends_is_cut_too(rounds):
    async def handler(_: Request) -> Response:
        return Response()

    async with serve(handler) as server:
        opening = asyncio.create_task(asyncio.open_connection("127.0.0.1", server.port))
        for _ in range(rounds):
            await asyncio.sleep(0)

    async with asyncio.timeout(5):
        with suppress(ConnectionError):
            reader, writer = await opening
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()


async def test_a_failing_handler_is_a_500_and_the_server_goes_on(caplog):
    async def handler(request: Request) -> Response:
        if request.path == "/bad":
            raise ValueError("broken")
        return Response(body=b"fine")

    async with serve(handler) as server, httpx2.AsyncClient() as client:
        bad = await client.get(f"{server.url}/bad")
        good = await client.get(f"{server.url}/good")

    assert (bad.status_code, good.content) == (500, b"fine")
    assert "broken" in caplog.text


async def test_bytes_that_are_not_http_get_a_400():
    async with serve(echo) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")

        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        writer.close()


async def test_a_client_that_waits_for_100_continue_gets_it():
    async with serve(echo) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        writer.write(b"ok")

        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        writer.close()


def test_a_thread_serves_callers_that_are_not_async():
    with serve_in_thread(echo) as server:
        reply = httpx2.post(server.url, content=b"hello")

    assert reply.content == b"hello"
    assert not [thread for thread in threading.enumerate() if thread.name == "loopback-server"]


def test_a_port_that_is_taken_is_an_error_for_the_caller():
    with serve_in_thread(echo) as server, pytest.raises(OSError), serve_in_thread(echo, server.port):
        pass
