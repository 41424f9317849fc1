"""A model server in a process of its own that costs next to nothing: canned answers by the number of the request, and
the moment at which each request began to arrive."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"


@dataclass
class Answering:
    """Where the server is, and, once it has ended, the milliseconds between each answer and the next request."""

    url: str
    gaps: list[float] = field(default_factory=list)


@contextlib.contextmanager
def answering(calls: list[list[tuple[str, str]]]) -> Iterator[Answering]:
    """Serve OpenAI chat completions: the n-th request is answered with the n-th list of (tool, arguments JSON), later
    ones with words."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.answering"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(calls) + "\n")
    process.stdin.flush()
    server = Answering(url=f"http://127.0.0.1:{process.stdout.readline().strip()}/v1")
    try:
        yield server
    finally:
        process.stdin.close()
        server.gaps = json.loads(process.stdout.read())
        process.wait()


def events(number: int, calls: list[tuple[str, str]]) -> bytes:
    """One answer as server-sent events."""
    base = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    for index, (name, arguments) in enumerate(calls):
        call = {"index": index, "id": f"call_{number}_{index}", "type": "function"}
        deltas.append({"tool_calls": [{**call, "function": {"name": name, "arguments": arguments}}]})
    if not calls:
        deltas.append({"content": "Done."})
    chunks: list[dict[str, object]] = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    reason = "tool_calls" if calls else "stop"
    chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    chunks.append({**base, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}})
    lines = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return f"{lines}data: [DONE]\n\n".encode()


class Connection(asyncio.Protocol):
    """Counts the requests of all connections."""

    number = 0
    answered = 0.0
    gaps: list[float] = []  # noqa: RUF012 - one server, one list
    bodies: list[bytes] = []  # noqa: RUF012 - one server, one list

    def __init__(self) -> None:
        self.received = bytearray()
        self.wanted = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not self.received and not self.wanted and Connection.answered:
            Connection.gaps.append((time.perf_counter() - Connection.answered) * 1000)
        self.received += data
        if not self.wanted and (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.received[:end]).lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            self.wanted = end + 4 + length
        if self.wanted and len(self.received) >= self.wanted:
            self.received.clear()
            self.wanted = 0
            body = self.bodies[min(Connection.number, len(self.bodies) - 1)]
            Connection.number += 1
            Connection.answered = time.perf_counter()  # Once it is written the other side may run before this one.
            self.transport.write(HEAD % len(body) + body)


async def serve() -> None:
    """Serve until standard input ends, then print the gaps."""
    loop = asyncio.get_running_loop()
    calls = json.loads(sys.stdin.readline())
    Connection.bodies = [events(number, each) for number, each in enumerate([*calls, []])]
    server = await loop.create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()
    print(json.dumps(Connection.gaps))


if __name__ == "__main__":
    asyncio.run(serve())
