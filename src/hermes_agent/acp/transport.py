"""Standard input and output as lines of JSON: checked when they come, in order and never blocking when they go."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import field
from typing import Any, TypeAlias

import msgspec

from hermes_agent.core.dataclass import dataclass
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
"""The id of the editor's request that a task answers."""
asked_id: ContextVar[int | None] = ContextVar("asked_id", default=None)
"""The id of the last request that a task sent."""


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


@dataclass(slots=True)
class _Waiting:
    """A message that waits. Later pieces of the same message of the agent (`key`) join it."""

    message: Json
    key: tuple[object, ...] | None
    pieces: list[Any] = field(default_factory=list)

    def written(self) -> bytes:
        if self.key is not None:
            self.message["params"]["update"]["content"]["text"] = "".join(self.pieces)
        return written(self.message) if self.key else self.pieces[0]


class StdioTransport:
    """Implements the SDK's `Transport`. What is sent waits in a queue: `send` never waits for the editor, and whoever
    sends updates awaits `room` first. `gone` is set when the editor reads no more."""

    def __init__(self, reading: int, writing: int) -> None:
        self._in, self._out, self._read = reading, writing, bytearray()
        self._queue: asyncio.Queue[_Waiting | None] = asyncio.Queue()
        self._last: dict[object, _Waiting] = {}
        self._bytes, self._under_way = 0, set[object]()
        self._emptied, self.gone = asyncio.Event(), asyncio.Event()
        self._emptied.set()
        if not os.isatty(writing):
            os.set_blocking(writing, False)
        self._writing = spawn(self._write(), name="writer to the editor")

    async def room(self) -> None:
        """Return when little waits for the editor."""
        await self._emptied.wait()

    async def send(self, message: Json) -> None:
        """Queue a message; the task that sends a request finds its id in `asked_id`."""
        if "method" in message and "id" in message:
            asked_id.set(message["id"])
        self._put(message)

    def _put(self, message: Json) -> None:
        if "method" not in message:
            self._under_way.discard(message.get("id"))
        params = message.get("params") or {}
        session, update = params.get("sessionId"), params.get("update") or {}
        kind, waiting = update.get("sessionUpdate"), self._last.get(session)
        key = (kind, update.get("messageId")) if kind in CHUNKS and update["content"]["type"] == "text" else None
        if key is None or waiting is None or waiting.key != key:
            waiting = self._last[session] = _Waiting(message, key)
            self._queue.put_nowait(waiting)
        waiting.pieces.append(update["content"]["text"] if key else written(message))
        self._bytes += len(waiting.pieces[-1])
        if self._bytes > MOST_WAITING:
            self._emptied.clear()

    async def _write(self) -> None:
        while (each := await self._queue.get()) is not None:
            self._last = {name: last for name, last in self._last.items() if last is not each}
            if not await self._written(each.written()):
                break
            self._bytes -= sum(map(len, each.pieces))
            if self._bytes <= MOST_WAITING // 2:
                self._emptied.set()
        self.gone.set()
        self._emptied.set()

    async def _written(self, line: bytes) -> bool:
        left, loop = memoryview(line), asyncio.get_running_loop()
        while left:
            try:
                left = left[os.write(self._out, left) :]
            except BlockingIOError:
                await _ready(loop.add_writer, loop.remove_writer, self._out)
            except OSError:
                return False
        return True

    async def receive(self) -> Json | None:
        """The next message that is one; what is none is answered here. None at the end."""
        while (line := await self._line()) is not None:
            if not line.strip():
                continue
            message, code, why = self._read_from(line)
            if not why:
                request_id.set(message.get("id"))
                return _answer_in(message)
            named = message.get("id") if isinstance(message, dict) and "method" in message else None
            known = named if is_id(named) and named not in self._under_way else None
            self._put({"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": why}})
        return None

    def _read_from(self, line: bytes) -> tuple[Any, int, str]:
        """What is in a line, with a code and why it is refused: as no message, or as a request under way."""
        if len(line) > LONGEST_LINE:
            return None, INVALID, f"A message has at most {LONGEST_LINE:,} bytes: this one was left out."
        try:
            message = msgspec.json.decode(line)
            why = wrong_with(message)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            return None, PARSE, f"This line is no JSON ({str(error)[:200]})."
        if not why and "method" in message and "id" in message:
            if (number := message["id"]) in self._under_way:
                why = f"A request with the id {str(number)[:80]} is under way: give this one another."
            self._under_way.add(number)
        return message, INVALID, why

    async def _line(self) -> bytes | None:
        """The next line; None at the end. Of one that is too long there is one byte more than may be."""
        searched = 0
        while (end := self._read.find(b"\n", searched)) < 0:
            del self._read[LONGEST_LINE + 1 :]
            searched = len(self._read)
            if not (piece := await self._piece()):
                rest, self._read = bytes(self._read), bytearray()
                return rest or None
            self._read += piece
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return line

    async def _piece(self) -> bytes:
        loop = asyncio.get_running_loop()
        while True:
            with suppress(PermissionError):  # A file is always ready.
                await _ready(loop.add_reader, loop.remove_reader, self._in)
            try:
                return os.read(self._in, READ_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                return b""

    async def close(self) -> None:
        """Write what waits for a moment more, and end."""
        self._queue.put_nowait(None)
        await asyncio.wait((self._writing,), timeout=LAST_SECONDS)
        self._writing.cancel()


async def _ready(add: Callable[..., object], remove: Callable[[int], object], handle: int) -> None:
    free = asyncio.Event()
    add(handle, free.set)
    try:
        await free.wait()
    finally:
        remove(handle)


def written(message: Json) -> bytes:
    """The message as a line that every parser reads."""
    try:
        return msgspec.json.encode(message) + b"\n"
    except (UnicodeEncodeError, OverflowError, TypeError):
        return json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def is_id(named: object) -> bool:
    """Whether that names a request."""
    return named is None or isinstance(named, str) or (type(named) is int and abs(named) < LARGEST_ID)


def wrong_with(message: object) -> str:
    """Why a JSON value is no message of JSON-RPC; empty where it is."""
    if not isinstance(message, dict):
        return "A message is one JSON object."
    is_answer = "id" in message and not message.keys().isdisjoint(("result", "error"))
    rules = (
        (is_id(message.get("id")), "`id` is a text or a whole number."),
        ("method" in message or is_answer, "`method` is missing."),
        (isinstance(message.get("method", ""), str), "`method` is a text."),
        ("method" not in message or isinstance(message.get("params"), dict | list | None), "`params` is an object."),
    )
    return next((why for holds, why in rules if not holds), "")


def _answer_in(message: Json) -> Json:
    """A message whose error has the parts that the SDK reads."""
    if "method" in message or isinstance(error := message.get("error"), dict | None):
        return message
    return {"id": message["id"], "error": {"code": INTERNAL, "message": str(error)}}
