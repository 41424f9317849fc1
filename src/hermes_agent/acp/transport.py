"""Standard input and output as lines of JSON: checked when they come, in order and never blocking when they go."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeAlias

import msgspec

from hermes_agent.host.tasks import spawn

Json: TypeAlias = dict[str, Any]
LONGEST_LINE = 64 << 20
MOST_WAITING = 1 << 20
"""Bytes that wait for a slow editor before updates wait too."""
READ_BYTES = 1 << 18
LAST_SECONDS = 0.5
PARSE, INVALID, PARAMS, INTERNAL = -32700, -32600, -32602, -32603
CHUNKS = frozenset({"agent_message_chunk", "agent_thought_chunk"})
LARGEST_ID = 2**63
request_id: ContextVar[Any] = ContextVar("request_id", default=None)
"""The id of the request that a task answers."""


def claim_stdio() -> tuple[int, int]:
    """Take standard input and output for the protocol alone: what reads or prints later gets nothing of it, and writes
    to standard error. Returns the handles."""
    handles = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return handles


class _Chunk:
    """A piece of a message that waits; later pieces of the same message join it."""

    def __init__(self, message: Json, key: tuple[str, ...]) -> None:
        self.message, self.key, self.pieces = message, key, [message["params"]["update"]["content"]["text"]]

    def written(self) -> bytes:
        self.message["params"]["update"]["content"]["text"] = "".join(self.pieces)
        return written(self.message)


class StdioTransport:
    """Implements the SDK's `Transport`. What is sent waits in a queue: `send` never waits for the editor, and whoever
    sends updates awaits `room` first. `gone` is set when the editor reads no more."""

    def __init__(self, reading: int, writing: int) -> None:
        self._in, self._out = reading, writing
        self._read, self._dropping = bytearray(), False
        self._queue: deque[bytes | _Chunk | None] = deque()
        self._last: dict[str, _Chunk] = {}
        self._bytes = 0
        self._filled, self._emptied, self.gone = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._emptied.set()
        self.asked: dict[asyncio.Task[Any] | None, int] = {}
        self.after: dict[Any, Callable[[], object]] = {}
        if not os.isatty(writing):
            os.set_blocking(writing, False)
        self._writing = spawn(self._write(), name="writer to the editor")

    async def room(self) -> None:
        """Return when little waits for the editor."""
        await self._emptied.wait()

    async def send(self, message: Json) -> None:
        """Queue a message. A request's id is kept by the task that asks; after a response its `after` is called."""
        if "method" in message and "id" in message:
            self.asked[asyncio.current_task()] = message["id"]
        self._put(message)
        if "method" not in message and (then := self.after.pop(message.get("id"), None)):
            then()

    def _put(self, message: Json) -> None:
        params = message.get("params") or {}
        session, update = str(params.get("sessionId", "")), params.get("update") or {}
        last = self._last.pop(session, None)
        if update.get("sessionUpdate") in CHUNKS and update["content"]["type"] == "text":
            key = (update["sessionUpdate"], str(update.get("messageId")))
            text = update["content"]["text"]
            if last is not None and last.key == key:
                last.pieces.append(text)
            else:
                last = _Chunk(message, key)
                self._queue.append(last)
            self._last[session] = last
            self._bytes += len(text)
        else:
            self._queue.append(line := written(message))
            self._bytes += len(line)
        self._filled.set()
        if self._bytes > MOST_WAITING:
            self._emptied.clear()

    async def _write(self) -> None:
        while True:
            await self._filled.wait()
            while self._queue:
                if (each := self._queue.popleft()) is None:
                    return
                if isinstance(each, _Chunk):
                    self._last = {name: last for name, last in self._last.items() if last is not each}
                    size, line = sum(map(len, each.pieces)), each.written()
                else:
                    size, line = len(each), each
                if not await self._written(line):
                    self.gone.set()
                    self._emptied.set()
                    return
                self._bytes -= size
                if self._bytes <= MOST_WAITING // 2:
                    self._emptied.set()
            self._filled.clear()

    async def _written(self, line: bytes) -> bool:
        left = memoryview(line)
        while left:
            try:
                left = left[os.write(self._out, left) :]
            except BlockingIOError:
                loop, free = asyncio.get_running_loop(), asyncio.Event()
                loop.add_writer(self._out, free.set)
                try:
                    await free.wait()
                finally:
                    loop.remove_writer(self._out)
            except OSError:
                return False
        return True

    async def receive(self) -> Json | None:
        """The next message that is one; what is none is answered here. None at the end."""
        while (line := await self._line()) is not None:
            if not line.strip():
                continue
            try:
                message = msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
                self._refuse(None, PARSE, f"This line is no JSON ({str(error)[:200]}).")
                continue
            if (why := wrong_with(message)) is None:
                request_id.set(message.get("id"))
                return message if "method" in message else answer_in(message)
            named = message.get("id") if isinstance(message, dict) and "method" in message else None
            self._refuse(named if is_id(named) else None, INVALID, why)
        return None

    def _refuse(self, named: object, code: int, words: str) -> None:
        self._put({"jsonrpc": "2.0", "id": named, "error": {"code": code, "message": words}})

    async def _line(self) -> bytes | None:
        """The next line; None at the end. One that is too long is refused, and what follows it is read."""
        searched = 0
        while (end := self._read.find(b"\n", searched)) < 0:
            searched = len(self._read)
            if searched > LONGEST_LINE:
                self._dropping, searched = True, 0
                self._read.clear()
            piece = await self._piece()
            if not piece:
                rest, self._read = bytes(self._read), bytearray()
                return rest if rest and not self._dropping else None
            self._read += piece
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        if self._dropping:
            self._dropping = False
            self._refuse(None, INVALID, f"A message has at most {LONGEST_LINE:,} bytes: this one was left out.")
            return b""
        return line

    async def _piece(self) -> bytes:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        try:
            loop.add_reader(self._in, ready.set)
        except PermissionError:  # A file is always ready.
            return os.read(self._in, READ_BYTES)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._in)
        try:
            return os.read(self._in, READ_BYTES)
        except BlockingIOError:
            return await self._piece()
        except OSError:
            return b""

    async def close(self) -> None:
        """Write what waits for a moment more, and end."""
        self._queue.append(None)
        self._filled.set()
        await asyncio.wait((self._writing,), timeout=LAST_SECONDS)
        self._writing.cancel()


def written(message: Json) -> bytes:
    """The message as a line that every parser reads."""
    try:
        return msgspec.json.encode(message) + b"\n"
    except (UnicodeEncodeError, OverflowError, TypeError):
        return json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def is_id(named: object) -> bool:
    """Whether that names a request."""
    if isinstance(named, int) and not isinstance(named, bool):
        return abs(named) < LARGEST_ID
    return named is None or isinstance(named, str)


def wrong_with(message: object) -> str | None:
    """Why a JSON value is no message of JSON-RPC; None where it is."""
    if not isinstance(message, dict):
        return "A message is one JSON object."
    if "id" in message and not is_id(message["id"]):
        return "`id` is a text or a whole number."
    if "method" not in message:
        return None if "id" in message and ("result" in message or "error" in message) else "`method` is missing."
    if not isinstance(message["method"], str):
        return "`method` is a text."
    if not isinstance(message.get("params"), dict | list | None):
        return "`params` is an object."
    return None


def answer_in(message: Json) -> Json:
    """An editor's answer, with an error that has the parts which the SDK reads."""
    error = message.get("error")
    if "result" in message and error is None:
        return {**message, "error": None}
    found = error if isinstance(error, dict) else {}
    code = found.get("code")
    plain = {"code": code if isinstance(code, int) else INTERNAL, "message": str(found.get("message") or error)}
    return {"id": message["id"], "error": plain}
