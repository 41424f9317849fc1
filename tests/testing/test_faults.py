"""What breaks on demand, seen from a client's side of a real socket."""

from __future__ import annotations

import asyncio
import json

import httpx2
import openai
import pytest

from hermes_agent.providers.demo.script import Answer, Call, Pace, Say
from hermes_agent.testing.faults import (
    BrokenToolJson,
    DuplicateIds,
    Empty,
    ErrorEvent,
    Hang,
    Html,
    KeepAlives,
    Malformed,
    Reset,
    Status,
    Truncate,
    WrongModel,
)
from hermes_agent.testing.model_servers import KEY, ModelServer, openai_model, serving
from hermes_agent.testing.scripted import tries
from tests.doubles.model_servers import anthropic_model

HELLO = [{"role": "user", "content": "hello"}]
BOTH = pytest.mark.parametrize("protocol", [openai_model, anthropic_model])


def question(server: ModelServer, *, stream: bool = True) -> dict:
    body = {"model": "m", "messages": HELLO, "max_tokens": 100, "stream": stream}
    headers = {"authorization": "Bearer test-key", "x-api-key": "test-key", "anthropic-version": "2023-06-01"}
    path = "/chat/completions" if server.url.endswith("/v1") else "/v1/messages"
    return {"method": "POST", "url": server.url + path, "json": body, "headers": headers, "timeout": 5}


async def told(server: ModelServer, received: list[bytes], *, stream: bool = True) -> None:
    """Read the reply to its end, as far as it comes."""
    async with httpx2.AsyncClient() as client, client.stream(**question(server, stream=stream)) as reply:
        async for piece in reply.aiter_raw():
            received += [piece]


@BOTH
@pytest.mark.parametrize("stream", [True, False])
async def test_a_reset_comes_after_the_events_that_went_well(protocol, stream):
    received: list[bytes] = []
    async with serving(protocol([Reset(after=2)])) as server:
        with pytest.raises(httpx2.ReadError):
            await told(server, received, stream=stream)

    assert b"".join(received)
    assert server.exchanges[0].events == 2
    assert not server.exchanges[0].abandoned


@BOTH
async def test_a_truncated_stream_ends_without_its_end(protocol):
    received: list[bytes] = []
    async with serving(protocol([Truncate()])) as server:
        with pytest.raises(httpx2.RemoteProtocolError):
            await told(server, received)

    assert received


@BOTH
async def test_a_clean_truncation_is_good_http_and_half_a_reply(protocol):
    received: list[bytes] = []
    async with serving(protocol([Truncate(clean=True)])) as server:
        await told(server, received)

    whole = b"".join(received)
    assert b"[DONE]" not in whole
    assert b"message_stop" not in whole


@BOTH
async def test_malformed_events_hold_json_that_stops_short(protocol):
    received: list[bytes] = []
    async with serving(protocol([Malformed()])) as server:
        await told(server, received)

    lines = [line for line in b"".join(received).splitlines() if line.startswith(b"data: {")]
    broken = [line for line in lines if not line.endswith(b"}")]
    assert len(broken) == 1


@BOTH
async def test_an_error_event_is_the_last_one(protocol):
    received: list[bytes] = []
    async with serving(protocol([ErrorEvent(message="too busy")])) as server:
        await told(server, received)

    last = b"".join(received).strip().splitlines()[-1]
    assert json.loads(last.removeprefix(b"data: "))["error"]["message"] == "too busy"


@BOTH
async def test_a_hanging_stream_brings_nothing_more(protocol):
    received: list[bytes] = []
    async with serving(protocol([Hang(after=2)])) as server:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await told(server, received)

    assert server.exchanges[0].events == 2
    assert server.exchanges[0].abandoned


async def test_a_server_can_hang_before_its_headers():
    async with serving(openai_model([Hang(headers=False)])) as server, httpx2.AsyncClient() as client:
        with pytest.raises(httpx2.ReadTimeout):
            await client.request(**{**question(server), "timeout": 0.2})


@BOTH
async def test_keep_alives_hold_no_content(protocol):
    received: list[bytes] = []
    async with serving(protocol([KeepAlives(after=1, every=0.001, count=5)])) as server:
        await told(server, received)

    whole = b"".join(received)
    assert whole.count(b": keep-alive") + whole.count(b"event: ping") >= 5
    assert b"[DONE]" in whole or b"message_stop" in whole


async def test_a_web_page_is_not_an_answer():
    async with serving(openai_model([Html(502)])) as server, httpx2.AsyncClient() as client:
        reply = await client.request(**question(server))

    assert (reply.status_code, reply.headers["content-type"]) == (502, "text/html; charset=utf-8")


@BOTH
async def test_broken_tool_json_arrives_as_it_was_written(protocol):
    received: list[bytes] = []
    async with serving(protocol([BrokenToolJson("read_file", '{"path": ')])) as server:
        await told(server, received)

    assert rb"{\"path\": " in b"".join(received)


async def test_duplicate_ids_are_duplicate():
    script = [DuplicateIds((Call("a"), Call("b")))]
    async with serving(openai_model(script)) as server, openai.AsyncOpenAI(base_url=server.url, api_key=KEY) as client:
        reply = await client.chat.completions.create(model="m", messages=HELLO)

    assert [call.id for call in reply.choices[0].message.tool_calls] == ["call_same", "call_same"]


@BOTH
async def test_an_empty_reply_ends_properly(protocol):
    received: list[bytes] = []
    async with serving(protocol([Empty()])) as server:
        await told(server, received)

    whole = b"".join(received)
    assert b"[DONE]" in whole or b"message_stop" in whole


@BOTH
async def test_the_wrong_model_signs_its_reply(protocol):
    received: list[bytes] = []
    async with serving(protocol([WrongModel("impostor")])) as server:
        await told(server, received)

    assert b'"model":"impostor"' in b"".join(received)


@BOTH
async def test_a_second_try_gets_the_next_answer_and_the_last_one_stays(protocol):
    script = [tries(Status(429), Status(500), Say("Yes."))]
    async with serving(protocol(script)) as server, httpx2.AsyncClient() as client:
        codes = [(await client.request(**question(server))).status_code for _ in range(4)]

    assert codes == [429, 500, 200, 200]


async def test_a_pace_spreads_the_events():
    pace = Pace(first=0.05, between=0.02, characters=4)
    received: list[bytes] = []
    async with serving(openai_model([Answer(pieces=(Say("four" * 5),), pace=pace)])) as server:
        await told(server, received)

    exchange = server.exchanges[0]
    assert exchange.ended - exchange.arrived >= 0.05 + 0.02 * 8
    assert len(received) >= 5


@BOTH
async def test_a_client_that_leaves_is_noticed(protocol):
    pace = Pace(between=0.01, characters=1)
    async with serving(protocol([Answer(pieces=(Say("word " * 1000),), pace=pace)])) as server:
        async with httpx2.AsyncClient() as client, client.stream(**question(server)) as reply:
            await anext(reply.aiter_raw())
        assert await asyncio.to_thread(server.exchanges[0].over.wait, 5)

    assert server.exchanges[0].abandoned
