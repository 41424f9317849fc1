"""An SMTP server on loopback (RFC 5321) that hands on what it takes, and fails on demand."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from hermes_agent.core.dataclass import dataclass
from hermes_agent.testing.platform import Trouble
from tests.doubles.conversing import conversing

REFUSALS = {
    Trouble.BUSY: "450 4.2.1 Too much mail, try again later",
    Trouble.BROKEN: "421 4.3.0 Not today",
    Trouble.GONE: "550 5.1.1 No such mailbox",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A mail that was handed over: for whom, and its bytes."""

    to: tuple[str, ...]
    content: bytes


@dataclass(slots=True, kw_only=True)
class Desk:
    """What happens to what clients hand over."""

    password: str
    trouble: Callable[[], Trouble | None]
    take: Callable[[Taken], None]


@asynccontextmanager
async def smtp_server(desk: Desk) -> AsyncIterator[int]:
    """Serve until the block ends; gives the port."""
    async with conversing(lambda reader, writer: Client(desk, reader, writer).converse()) as port:
        yield port


class Client:
    """One client; trouble strikes its next mail."""

    def __init__(self, desk: Desk, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._desk = desk
        self._reader = reader
        self._writer = writer
        self._to: list[str] = []
        self._trouble: Trouble | None = None

    async def converse(self) -> None:
        await self._say("220 ready")
        while line := (await self._reader.readline()).decode().strip():
            verb = line.split(" ")[0].upper()
            if verb == "DATA":
                if not await self._data():
                    return
            elif not await self._command(verb, line):
                return

    async def _command(self, verb: str, line: str) -> bool:
        """Answer; False where the connection ends."""
        match verb:
            case "EHLO":
                await self._say("250-double", "250 AUTH PLAIN")
            case "AUTH":
                said = base64.b64decode(line.split(" ")[-1]).decode().split("\0")[-1]
                await self._say("235 in" if said == self._desk.password else "535 5.7.8 no")
            case "MAIL":
                self._to, self._trouble = [], self._desk.trouble()
                if self._trouble is Trouble.CUT:
                    return False
                await self._say(REFUSALS[Trouble.BROKEN] if self._trouble is Trouble.BROKEN else "250 ok")
            case "RCPT":
                self._to.append(line.partition("<")[2].partition(">")[0])
                await self._say(REFUSALS.get(self._trouble, "250 ok") if self._trouble else "250 ok")
            case "QUIT":
                await self._say("221 bye")
                return False
            case _:
                await self._say("250 ok")
        return True

    async def _data(self) -> bool:
        await self._say("354 go on")
        content = (await self._reader.readuntil(b"\r\n.\r\n"))[:-5].replace(b"\r\n..", b"\r\n.")
        self._desk.take(Taken(to=tuple(self._to), content=content))
        if self._trouble is Trouble.DEAF:
            return False
        await self._say("what?" if self._trouble is Trouble.GARBLED else "250 taken")
        return True

    async def _say(self, *lines: str) -> None:
        self._writer.write("".join(f"{line}\r\n" for line in lines).encode())
        await self._writer.drain()
