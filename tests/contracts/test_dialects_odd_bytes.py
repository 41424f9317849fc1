"""What every dialect makes of bytes that are odd below the protocol: encodings, chunks, lengths, endless lines."""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from hermes_agent.core.errors import MalformedReply, ProviderError, Unreachable
from hermes_agent.core.messages import Reply
from hermes_agent.host.inbound.listener import Listening as Server
from hermes_agent.host.inbound.message import Request
from hermes_agent.providers.demo.script import Answer, Pace, Say
from hermes_agent.providers.settings import ModelSettings
from tests.providers.asking import DIALECTS, Spoken, Talk, asking

EVERY = pytest.mark.parametrize("spoken", DIALECTS, ids=lambda spoken: spoken.name)
ONCE = ModelSettings(max_retries=0)
WORDS = "Grüße, 世界! 👩‍👩‍👧 " * 3
MEGABYTE = 1024 * 1024
OK = b"HTTP/1.1 200 OK\r\ncontent-type: "
Dress = Callable[[bytes, bytes], bytes]


@asynccontextmanager
async def dressed(spoken: Spoken, answer: Answer, dress: Dress) -> AsyncIterator[Talk]:
    """A server whose answers are right, and are sent in the bytes that `dress` makes of the stream and its type."""
    model = spoken.serve(lambda _: answer)
    wire = model._wire

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await received(reader)
        heard = wire.read(request)
        stream = b"".join(wire.events(answer, heard, wire.usage(answer, heard)))
        writer.write(dress(wire.stream_type.encode(), stream))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(once, "127.0.0.1", 0)
    async with server:
        model.attach(Server(port=server.sockets[0].getsockname()[1], cut=print))
        async with asking(spoken, model, settings=ONCE) as talk:
            yield talk


async def received(reader: asyncio.StreamReader) -> Request:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
    method, target, _ = first.split(" ")
    path, _, query = target.partition("?")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers["content-length"]))
    return Request(method=method, path=path, query=query, headers=headers, body=body, arrived=time.monotonic())


def plain(kind: bytes, stream: bytes) -> bytes:
    return OK + kind + b"\r\nconnection: close\r\n\r\n" + stream


def old(kind: bytes, stream: bytes) -> bytes:
    return plain(kind, stream).replace(b"HTTP/1.1", b"HTTP/1.0")


def zipped(kind: bytes, stream: bytes) -> bytes:
    return OK + kind + b"\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n" + gzip.compress(stream)


def dribbled(kind: bytes, stream: bytes) -> bytes:
    """Each byte a chunk of its own, with an extension and leading zeros that a size may have, and a trailer."""
    chunks = b"".join(b"0001;odd=1\r\n" + bytes((byte,)) + b"\r\n" for byte in stream)
    return OK + kind + b"\r\ntransfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\nx-trailer: 1\r\n\r\n"


def overstated(kind: bytes, stream: bytes) -> bytes:
    return OK + kind + b"\r\ncontent-length: %d\r\n\r\n" % (len(stream) + 99) + stream


@EVERY
@pytest.mark.parametrize("dress", [plain, old, zipped, dribbled, overstated])
async def test_an_answer_is_read_however_its_bytes_are_cut_and_packed(spoken: Spoken, dress: Dress):
    async with dressed(spoken, Answer(pieces=(Say(WORDS),)), dress) as talk:
        assert (await talk.ask()).message.text == WORDS


def no_gzip(kind: bytes, stream: bytes) -> bytes:
    return OK + kind + b"\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n" + stream


def half_gzip(kind: bytes, stream: bytes) -> bytes:
    packed = gzip.compress(stream)
    return OK + kind + b"\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n" + packed[: len(packed) // 2]


def no_chunks(kind: bytes, stream: bytes) -> bytes:
    return OK + kind + b"\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n" + stream


def cut_chunk(kind: bytes, stream: bytes) -> bytes:
    half = stream[: len(stream) // 3]
    return OK + kind + b"\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n" % len(stream) + half


def understated(kind: bytes, stream: bytes) -> bytes:
    return OK + kind + b"\r\ncontent-length: %d\r\n\r\n" % (len(stream) // 3) + stream


def page(kind: bytes, _stream: bytes) -> bytes:
    return plain(kind, b"<!DOCTYPE html><html><body><h1>Sign in to continue</h1></body></html>")


def nothing(kind: bytes, _stream: bytes) -> bytes:
    return plain(kind, b"")


def no_http(_kind: bytes, _stream: bytes) -> bytes:
    return b"220 mail.example.org ESMTP\r\n"


BROKEN = [
    (no_gzip, ProviderError),
    (half_gzip, ProviderError),
    (no_chunks, Unreachable),
    (cut_chunk, Unreachable),
    (understated, ProviderError),
    (page, MalformedReply),
    (nothing, MalformedReply),
    (no_http, Unreachable),
]


@EVERY
@pytest.mark.parametrize(("dress", "kind"), BROKEN, ids=lambda value: getattr(value, "__name__", None))
async def test_bytes_that_are_no_answer_are_a_typed_outcome_with_a_sentence(
    spoken: Spoken, dress: Dress, kind: type[ProviderError]
):
    async with dressed(spoken, Answer(pieces=(Say(WORDS),)), dress) as talk:
        with pytest.raises(kind) as caught:
            await talk.ask()
    assert str(caught.value).startswith(f"{spoken.model} at 127.0.0.1")
    assert caught.value.retryable
    assert WORDS.startswith(caught.value.partial)


def in_one_event(size: int) -> Answer:
    return Answer(pieces=(Say("x" * size),), pace=Pace(characters=size))


@EVERY
async def test_ten_megabytes_in_one_event_are_an_answer(spoken: Spoken):
    async with dressed(spoken, in_one_event(10 * MEGABYTE), plain) as talk:
        reply = await talk.ask()
    assert isinstance(reply, Reply)
    assert len(reply.message.text) == 10 * MEGABYTE


@EVERY
async def test_an_event_without_an_end_is_given_up(spoken: Spoken):
    async with dressed(spoken, in_one_event(25 * MEGABYTE), plain) as talk:
        with pytest.raises(MalformedReply, match="stream holds a"):
            await talk.ask()
