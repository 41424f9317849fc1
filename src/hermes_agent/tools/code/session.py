"""One program's conversation with its tools: what it asks on its output, what is answered on its input."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.core.messages import Text
from hermes_agent.core.tool import Answer
from hermes_agent.sandbox.place import PlaceFailed, Running

GLANCE, LONGEST_GLANCE = 0.002, 0.2
CHUNK = 1 << 18
# What a pipe takes at once while the program waits at its other end.
PIECE = 60_000
SEND_TRIES, SEND_SECONDS = 50, 0.02


class TooManyCalls(ToolError):
    """The program asked for more tools than it may."""


class TooMuchOutput(ToolError):
    """The program printed more than it may."""


@dataclass(slots=True, kw_only=True)
class Conversation:
    """`call` makes a call of a tool and gives its answer. `printed` collects what is not for us. At most `most_calls`
    are made, and `most_bytes` printed."""

    running: Running
    mark: bytes
    call: Callable[[str, Mapping[str, Any]], Awaitable[Answer]]
    most_calls: int
    most_bytes: int
    calls: int = 0
    printed: bytearray = field(default_factory=bytearray)
    _seen: int = 0
    _rest: bytes = b""
    _pieces: list[bytes] = field(default_factory=list)

    async def go_on(self) -> None:
        """Answer until the program has ended. Raises what ended it before."""
        pause = GLANCE
        while True:
            ended = await self.running.poll()
            asked = await self._listen()
            if ended is not None and not asked:
                self.printed += self._rest
                return
            pause = GLANCE if asked else min(pause * 1.3, LONGEST_GLANCE)
            if not asked:
                await asyncio.sleep(pause)

    async def _listen(self) -> bool:
        """Read what is new and answer what it asks; whether there was anything."""
        new = await self.running.read(self._seen, CHUNK)
        self._seen += len(new)
        self._rest += new
        while (end := self._rest.find(b"\n")) >= 0:
            line, self._rest = self._rest[:end], self._rest[end + 1 :]
            if line.startswith(self.mark):
                # The newline before the mark is the mark's, not the program's.
                if self.printed.endswith(b"\n"):
                    del self.printed[-1:]
                await self._answer(line[len(self.mark) :])
            else:
                self.printed += line + b"\n"
        if len(self.printed) + len(self._rest) > self.most_bytes:
            raise TooMuchOutput(f"The code printed more than {self.most_bytes:,} bytes and was ended.")
        return bool(new)

    async def _answer(self, asked: bytes) -> None:
        if asked:
            self._pieces = _pieces(await self._called(asked))
        if self._pieces:
            await self._send(self._pieces.pop(0))

    async def _called(self, asked: bytes) -> bytes:
        self.calls += 1
        if self.calls > self.most_calls:
            raise TooManyCalls(f"The code called more than {self.most_calls} tools and was ended.")
        try:
            name, arguments = msgspec.json.decode(asked, type=tuple[str, dict[str, Any]])
        except msgspec.DecodeError:
            return _encoded("The call could not be read.", failed=True)
        answer = await self.call(name, arguments)
        return _encoded(_words(answer), failed=answer.is_error)

    async def _send(self, piece: bytes) -> None:
        for _ in range(SEND_TRIES):
            try:
                await self.running.write(piece)
            except PlaceFailed:
                if await self.running.poll() is not None:
                    return
                await asyncio.sleep(SEND_SECONDS)
                continue
            return


def _words(answer: Answer) -> str:
    return "".join(part.text if isinstance(part, Text) else f"[{part.kind}]" for part in answer.parts)


def _encoded(text: str, *, failed: bool) -> bytes:
    return json.dumps([failed, text], ensure_ascii=False).encode("utf-8", "replace")


def _pieces(content: bytes) -> list[bytes]:
    cut = [content[start : start + PIECE] for start in range(0, len(content), PIECE)]
    return [*(b"+" + piece + b"\n" for piece in cut[:-1]), b"-" + cut[-1] + b"\n"]
