"""An IMAP server on loopback, as much of RFC 3501 and of IDLE (RFC 2177) as a client uses that reads one folder."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import field
from email import message_from_bytes

from hermes_agent.core.dataclass import dataclass
from tests.doubles.conversing import conversing
from tests.doubles.serving import dripping

MB = 1_000_000
COMMAND = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s"]+)')


@dataclass(slots=True)
class Kept:
    """A mail in the folder."""

    uid: int
    content: bytes
    seen: bool = False

    def header(self, name: str) -> str:
        return str(message_from_bytes(self.content)[name])


@dataclass(slots=True)
class Folder:
    """The one folder, and who waits for more in it. `without_idle`: the server does not know IDLE; `cut`: how many of
    the next commands end the connection instead; `trouble`: a response code (RFC 5530) that answers every login;
    `slow` is how many seconds a megabyte takes."""

    password: str = "secret"
    mails: list[Kept] = field(default_factory=list)
    without_idle: bool = False
    cut: int = 0
    trouble: str = ""
    slow: float = 0.0
    waiting: set[asyncio.StreamWriter] = field(default_factory=set)

    def put(self, content: bytes) -> None:
        """A mail arrives."""
        self.mails.append(Kept(uid=len(self.mails) + 1, content=content))
        for each in self.waiting:
            each.write(f"* {len(self.mails)} EXISTS\r\n".encode())


@asynccontextmanager
async def imap_server(folder: Folder) -> AsyncIterator[int]:
    """Serve until the block ends; gives the port."""
    async with conversing(lambda reader, writer: Session(folder, reader, writer).converse()) as port:
        yield port


class Session:
    """One client."""

    def __init__(self, folder: Folder, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._folder = folder
        self._reader = reader
        self._writer = writer
        self._told = 0

    async def converse(self) -> None:
        await self._say("* OK ready")
        while line := (await self._reader.readline()).decode().strip():
            tag, _, rest = line.partition(" ")
            words = [quoted or plain for quoted, plain in COMMAND.findall(rest)]
            if self._folder.cut:
                self._folder.cut -= 1
                return
            verb = " ".join(words[:2]).upper() if words[0].upper() == "UID" else words[0].upper()
            await self._answer(tag, verb, words)
            if verb == "LOGOUT":
                return

    async def _answer(self, tag: str, verb: str, words: list[str]) -> None:
        lines: Callable[[list[str]], list[bytes]] | None = {
            "CAPABILITY": self._capability,
            "UID SEARCH": self._search,
            "UID FETCH": self._fetch,
            "UID STORE": self._store,
            "SELECT": self._select,
            "NOOP": lambda _: [],
            "LOGOUT": lambda _: [b"* BYE"],
        }.get(verb)
        if verb == "LOGIN":
            wrong = self._folder.trouble or ("AUTHENTICATIONFAILED" if words[2] != self._folder.password else "")
            await self._say(f"{tag} NO [{wrong}] no" if wrong else f"{tag} OK in")
        elif verb == "IDLE":
            await self._idle(tag)
        elif lines is None:
            await self._say(f"{tag} BAD {verb}")
        else:
            for each in lines(words):
                async for piece in dripping(each + b"\r\n", self._folder.slow * len(each) / MB):
                    self._writer.write(piece)
            await self._say(f"{tag} OK done")

    def _capability(self, _: list[str]) -> list[bytes]:
        return [b"* CAPABILITY IMAP4rev1" + (b"" if self._folder.without_idle else b" IDLE")]

    def _select(self, _: list[str]) -> list[bytes]:
        self._told = len(self._folder.mails)
        return [f"* {len(self._folder.mails)} EXISTS".encode(), b"* OK [UIDVALIDITY 1] valid"]

    def _search(self, words: list[str]) -> list[bytes]:
        match words[2:]:
            case ["HEADER", name, value]:
                found = [
                    mail.uid for mail in self._folder.mails if value in str(message_from_bytes(mail.content)[name])
                ]
            case _:
                found = [mail.uid for mail in self._folder.mails if not mail.seen]
        return [f"* SEARCH {' '.join(map(str, found))}".rstrip().encode()]

    def _fetch(self, words: list[str]) -> list[bytes]:
        uid = int(words[2])
        what = " ".join(words[3:]).strip("()")
        mail = next((each for each in self._folder.mails if each.uid == uid), None)
        if mail is None:
            return []
        if what == "RFC822.SIZE":
            return [f"* {uid} FETCH (UID {uid} RFC822.SIZE {len(mail.content)})".encode()]
        content = mail.content
        if "HEADER" in what:
            content = content.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        if found := re.search(r"<0\.(\d+)>", what):
            content = content[: int(found[1])]
        return [f"* {uid} FETCH (UID {uid} BODY[] {{{len(content)}}}\r\n".encode() + content + b")"]

    def _store(self, words: list[str]) -> list[bytes]:
        for mail in self._folder.mails:
            if mail.uid == int(words[2]):
                mail.seen = True
        return []

    async def _idle(self, tag: str) -> None:
        # What came since the client was told is told at once, as by any server, and in the same segment.
        news = f"\r\n* {len(self._folder.mails)} EXISTS" if len(self._folder.mails) > self._told else ""
        self._folder.waiting.add(self._writer)
        try:
            await self._say(f"+ idling{news}")
            await self._reader.readline()  # DONE
        finally:
            self._folder.waiting.discard(self._writer)
            self._told = len(self._folder.mails)
        await self._say(f"{tag} OK done")

    async def _say(self, line: str) -> None:
        self._writer.write(line.encode() + b"\r\n")
        await self._writer.drain()
