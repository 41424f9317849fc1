"""CPU per streamed chunk: ours beside the vendors' SDKs and a bare httpx2 loop that throws the bytes away.

A second process sends every chunk on its own, 0.3 ms apart ("singly") or as fast as
the socket takes them ("in bursts"). What is counted is this process's CPU time, the best of three rounds.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import anthropic
import httpx2
import openai

from bench.figures import Figure
from bench.wires import converse_events, gemini_events, response_events
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.messages import ModelRequest, Prefix, said
from hermes_agent.core.spending import Grant, grant
from hermes_agent.host.http import Http
from hermes_agent.providers.broker import Broker, CallOpened, CallSettled
from hermes_agent.providers.route import choose
from hermes_agent.providers.routing.chain import single
from hermes_agent.providers.routing.endpoint import Sizes
from hermes_agent.providers.settings import ModelSettings

ROUNDS = 3
CHUNKS = 3_000
IN_BURSTS = "in bursts"
LIMITED = {"openai_chat", "anthropic"}
MOST = 25.0  # microseconds that a chunk of a reply that arrives in bursts may cost
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
CHAT_HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "gpt-5.2"}
BROKERS: dict[str, Broker] = {}


def chat_events(count: int) -> list[bytes]:
    def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return b"data: " + json.dumps({**CHAT_HEAD, "choices": [choice], "usage": None}).encode() + b"\n\n"

    return [*(chunk({"content": f" word{place}"}) for place in range(count)), chunk({}, "stop"), b"data: [DONE]\n\n"]


def message_events(count: int) -> list[bytes]:
    def event(kind: str, **fields: object) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    words = (
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": f" word{place}"})
        for place in range(count)
    )
    return [
        event("message_start", message={**message, "stop_reason": None, "stop_sequence": None}),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *words,
        event("content_block_stop", index=0),
        event(
            "message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": count}
        ),
        event("message_stop"),
    ]


WIRES: tuple[tuple[bytes, Callable[[int], list[bytes]]], ...] = (
    (b"completions", chat_events),
    (b"/messages", message_events),
    (b"/responses", response_events),
    (b":streamGenerateContent", gemini_events),
    (b"/converse-stream", converse_events),
)


async def serve(count: int, pause: float) -> None:
    """Answer every request with the stream of its protocol; print the port first."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next(
                int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
            )
            await reader.readexactly(length)
            asked = head.split(b"\r\n")[0]
            events = next(make for path, make in WIRES if path in asked)(count)
            writer.write(HEAD)
            for event in events:
                writer.write(b"%x\r\n%b\r\n" % (len(event), event))
                await writer.drain()
                if pause:
                    await asyncio.sleep(pause)
            writer.write(b"0\r\n\r\n")

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class NoBook:
    sizes = Sizes()

    async def open(self, call: CallOpened) -> Grant:
        return grant(call.bid, ())

    async def complete(self, call: CallSettled) -> None: ...


async def ours(url: str, model: str) -> None:
    if model not in BROKERS:
        settings = ModelSettings(default=model, base_url=url)
        route = choose(settings, lambda _: "key")
        BROKERS[model] = Broker(single(route, Http(), SystemClock(), settings), NoBook())
    prefix = Prefix(system="", tools=(), hash="")
    request = ModelRequest(
        call_id="c", session="s", run="r", turn=1, purpose="chat", prefix=prefix, messages=[said("Hi")]
    )
    async for _ in BROKERS[model].ask(request):
        pass


async def bare(client: httpx2.AsyncClient, url: str) -> None:
    async with client.stream("POST", url, json={}) as response:
        async for _ in response.aiter_bytes():
            pass


async def measured(ask: Callable[[], Awaitable[None]], count: int) -> float:
    """Microseconds of CPU per chunk."""
    await ask()
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        await ask()
        best = min(best, time.process_time() - began)
    return best / count * 1e6


async def figures(port: int, count: int, title: str) -> list[Figure]:
    BROKERS.clear()
    root = f"http://127.0.0.1:{port}"
    plain = httpx2.AsyncClient(timeout=None, trust_env=False)
    chat = openai.AsyncOpenAI(base_url=f"{root}/v1", api_key="key")
    messages = anthropic.AsyncAnthropic(base_url=root, api_key="key")

    async def by_openai() -> None:
        question = [{"role": "user", "content": "Hi"}]
        async for _ in await chat.chat.completions.create(model="gpt-5.2", messages=question, stream=True):
            pass

    async def by_anthropic() -> None:
        question = [{"role": "user", "content": "Hi"}]
        async for _ in await messages.messages.create(model="m", max_tokens=9, messages=question, stream=True):
            pass

    rows: list[tuple[str, str, Callable[[], Awaitable[None]]]] = [
        ("openai_chat", "bare httpx2", lambda: bare(plain, f"{root}/v1/chat/completions")),
        ("openai_chat", "ours", lambda: ours(f"{root}/v1", "openai/gpt-5.2")),
        ("openai_chat", "openai SDK", by_openai),
        ("anthropic", "bare httpx2", lambda: bare(plain, f"{root}/v1/messages")),
        ("anthropic", "ours", lambda: ours(root, "anthropic/claude-opus-5-5")),
        ("anthropic", "anthropic SDK", by_anthropic),
        ("openai_responses", "bare httpx2", lambda: bare(plain, f"{root}/v1/responses")),
        ("openai_responses", "ours", lambda: ours(f"{root}/v1", "openai/gpt-5.6-sol")),
        ("gemini", "bare httpx2", lambda: bare(plain, f"{root}/models/m:streamGenerateContent")),
        ("gemini", "ours", lambda: ours(root, "gemini/gemini-3.8-flash")),
        ("bedrock", "bare httpx2", lambda: bare(plain, f"{root}/model/m/converse-stream")),
        ("bedrock", "ours", lambda: ours(root, "bedrock/global.anthropic.claude-sonnet-4-6")),
    ]
    floor, found = 0.0, []
    for dialect, who, ask in rows:
        cost = await measured(ask, count)
        if who.startswith("bare"):
            floor = cost
        else:
            name = f"CPU per chunk {title}, {dialect}, {who}"
            limit = MOST / floor if who == "ours" and title == IN_BURSTS and dialect in LIMITED else None
            found.append(Figure(name=name, value=cost, floor=floor, unit="us", limit=limit))
    await plain.aclose()
    return found


def measure() -> list[Figure]:
    """The figures of this module."""
    found: list[Figure] = []
    for title, pause in (("singly", 0.0003), (IN_BURSTS, 0.0)):
        command = [sys.executable, "-m", "bench.chunks", "--serve", str(CHUNKS), str(pause)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            found += asyncio.run(figures(int(server.stdout.readline()), CHUNKS, title))
            server.terminate()
    return found


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[2]), float(sys.argv[3])))
