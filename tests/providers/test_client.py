"""One attempt on a real socket, byte by byte."""

import asyncio
import contextlib
import gzip
import time

import httpx2
import pytest

from hermes_agent.core.errors import MalformedReply, ProviderError, Stalled
from hermes_agent.host.http import Http
from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.inbound.message import Cut, Request, Response
from hermes_agent.providers.client import Client, Patience
from hermes_agent.providers.dialects.openai_chat import DIALECT
from hermes_agent.providers.outcomes import Finished, Wire
from tests.providers.asking import route_to

WORDS = b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\n'
END = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
WIRE = Wire(path="/chat/completions", headers={"content-type": "application/json"}, body=b"{}")
STALL = 0.05
STREAM = {"content-type": "text/event-stream"}


async def answered(*pieces: bytes | Exception | asyncio.Event, headers: dict[str, str] | None = None) -> Finished:
    async def body():
        for piece in pieces:
            match piece:
                case bytes():
                    yield piece
                case asyncio.Event():
                    await piece.wait()
                case _:
                    raise piece

    async def handle(_: Request) -> Response:
        return Response(headers={**STREAM, **(headers or {})}, body=body())

    http = Http()
    async with serve(handle) as server:
        route = route_to("openai/gpt-5.2", server.url)
        decoder = DIALECT.decoder(route, set())
        client = Client(http, route, DIALECT)
        *_, last = [item async for item in client.stream(WIRE, decoder, Patience(left=5.0, stall=1.0, now=0.0))]
        await http.close()
    assert isinstance(last, Finished)
    return last


async def test_an_answer_may_be_compressed_and_cut_anywhere():
    packed = gzip.compress(WORDS + END + DONE)
    finished = await answered(
        *(packed[at : at + 7] for at in range(0, len(packed), 7)), headers={"content-encoding": "gzip"}
    )
    assert finished.parts[0].text == "Hi"


async def test_bytes_that_are_not_compressed_as_they_say_are_a_provider_s_failure():
    with pytest.raises(ProviderError):
        await answered(b"not gzip at all", headers={"content-encoding": "gzip"})


async def test_an_answer_whose_end_had_come_is_whole_though_the_connection_broke():
    finished = await answered(WORDS, END, Cut(reset=True))
    assert (finished.parts[0].text, finished.usage.known) == ("Hi", False)


async def test_the_end_mark_ends_the_answer_though_the_server_holds_the_connection():
    began = time.monotonic()
    finished = await answered(WORDS, END, DONE, asyncio.Event())
    assert finished.parts[0].text == "Hi"
    assert time.monotonic() - began < 1.0


async def test_a_line_without_an_end_is_malformed():
    piece = b"x" * 2**20
    with pytest.raises(MalformedReply, match="16 MB") as caught:
        await answered(WORDS, b"data: ", *[piece] * 17)
    assert (caught.value.provider, caught.value.partial) == ("openai", "Hi")


async def test_a_large_line_that_is_whole_is_read():
    large = b'data: {"choices": [{"delta": {"content": "' + b"x" * 10 * 2**20 + b'"}}]}\n\n'
    assert len((await answered(large, END, DONE)).parts[0].text) == 10 * 2**20


async def test_empty_choices_and_roles_are_no_content():
    finished = await answered(b'data: {"choices": []}\n\n', WORDS, b'data: {"choices": null}\n\n', END)
    assert finished.parts[0].text == "Hi"


class Connecting(httpx2.AsyncBaseTransport):
    """Connects for ever, and cancels its task meanwhile, or takes a cancellation for its own, as those do who try
    several addresses at once."""

    def __init__(self, *, cancels: bool) -> None:
        self._cancels = cancels

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        task = asyncio.current_task()
        assert task is not None
        if self._cancels:
            task.cancel()
            await self._lose_a_cancellation()
            struck = asyncio.Event()
            asyncio.get_running_loop().call_later(4 * STALL, struck.set)
            await struck.wait()
            task.uncancel()
        else:
            await self._lose_a_cancellation()
        await asyncio.Event().wait()
        raise AssertionError(request)

    async def _lose_a_cancellation(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


@pytest.mark.parametrize("cancels", [True, False])
async def test_a_wait_ends_though_others_cancel_and_take_back_at_that_moment(cancels: bool):
    class Slow(Http):
        def client(self, url: str) -> httpx2.AsyncClient:
            return httpx2.AsyncClient(transport=Connecting(cancels=cancels), base_url=url)

    route = route_to("openai/gpt-5.2", "http://127.0.0.1:1")
    client, decoder = Client(Slow(), route, DIALECT), DIALECT.decoder(route, set())
    with pytest.raises(Stalled):
        async with asyncio.timeout(5):
            async for _ in client.stream(WIRE, decoder, Patience(left=None, stall=STALL, now=0.0)):
                pass

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
