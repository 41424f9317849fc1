"""Egress proxy on loopback: lets known commands and browser sessions reach checked hosts, and notes which."""

from __future__ import annotations

import asyncio
import base64
import re
import secrets
import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Protocol
from urllib.parse import urlsplit

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import BadArguments, Refused, ToolError
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.traffic import REACHED, STOPPED, Callers
from hermes_agent.tools.web.pages import PORTS, Addresses, Target, parsed

HERE = "127.0.0.1"
HEAD_BYTES, HEAD_SECONDS = 64 << 10, 20.0
CONNECT_SECONDS, IDLE_SECONDS, LINGER_SECONDS = 20.0, 600.0, 1.0
CHUNK = 64 << 10
MOST_OF_A_CALLER, MOST = 128, 512
FIRST_OPEN_PORT = 1024  # of those below, only the web's: mail, logins and the like want a host that the owner named
HOP_BY_HOP = re.compile(r"(connection|keep-alive|upgrade|te|proxy-.*)", re.IGNORECASE)
ENTRY = re.compile(r"(\[.*\]|[^:]*|.*:.*:.*?)(?::(\d+))?")
NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
PLAIN = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
REASONS = {400: "Bad Request", 403: "Forbidden", 407: "Proxy Authentication Required", 502: "Bad Gateway"}


class Caller(Protocol):
    """Who asks: notes what it reached and what was refused to it. `note` blocks."""

    def note(self, kind: str, words: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A request: `url` is where it goes; `fields` are its header lines; `tunnel`: only bytes are passed on."""

    method: str
    url: str
    fields: tuple[tuple[str, str], ...]
    tunnel: bool


class Failed(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


class EgressProxy:
    """Serves whoever `callers` knows by the connection, or `admit` gave a token. `hosts`: globs, with or without a
    port, of what may be reached; empty: every public web site. An address of this machine needs its port there."""

    def __init__(
        self,
        addresses: Addresses,
        callers: Callers,
        hosts: Sequence[str] = (),
        *,
        head_seconds: float = HEAD_SECONDS,
    ) -> None:
        self.callers = callers
        self._addresses = addresses
        self._hosts = tuple(host.lower() for host in hosts)
        self._head_seconds = head_seconds
        self._tokens: dict[str, Caller] = {}
        self._open: Counter[Caller] = Counter()
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._socket: socket.socket | None = None
        self._starting = asyncio.Lock()
        self._port = 0

    async def open(self) -> int:
        """Start it in the running loop, where it does not run there yet. Returns its port on 127.0.0.1."""
        async with self._starting:
            if self._server is None or self._server.get_loop() is not asyncio.get_running_loop():
                self._drop()
                self._socket = socket.create_server((HERE, 0))
                self._port = self._socket.getsockname()[1]
                self._server = await asyncio.start_server(self._accept, sock=self._socket, limit=HEAD_BYTES)
        return self._port

    async def close(self) -> None:
        """End it with every connection."""
        if self._server is not None:
            self._server.close()
        self._drop()
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        if serving:
            await asyncio.wait(serving)

    def _drop(self) -> None:
        """Close what a loop listened with that has ended: no server of it can."""
        self._server = None
        if self._socket is not None:
            self._socket.close()

    def admit(self, caller: Caller) -> str:
        """A token for a session that names itself: the password of its `Proxy-Authorization`, under any user."""
        token = secrets.token_urlsafe(24)
        self._tokens[token] = caller
        return token

    def dismiss(self, token: str) -> None:
        """Take the token back."""
        self._tokens.pop(token, None)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = spawn(self._serve(reader, writer), name="connection of a command")
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller: Caller | None = self.callers.take(writer.get_extra_info("peername")[1])
        try:
            async with asyncio.timeout(self._head_seconds):
                head = await _head(reader)
            caller = caller or self._tokens.get(_token(head))
            if caller is None:
                raise Failed(407, "The proxy serves commands of Hermes only.")
            await self._relay(head, caller, reader, writer)
        except Failed as failed:
            if failed.status == 403 and caller is not None:
                await asyncio.to_thread(caller.note, STOPPED, failed.words)
            await _refuse(failed, reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # one of the two has gone, or says nothing
        finally:
            writer.close()

    async def _relay(
        self, head: Head, caller: Caller, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._open[caller] >= MOST_OF_A_CALLER or self._open.total() >= MOST:
            raise Failed(502, "There are too many connections at a time.")
        self._open[caller] += 1
        try:
            target = await self._checked(head.url)
            there, back = await _connected(target)
            try:
                await asyncio.to_thread(caller.note, REACHED, _place(target.url))
                (writer if head.tunnel else back).write(
                    b"HTTP/1.1 200 OK\r\n\r\n" if head.tunnel else _passed_on(head, target)
                )
                await _pass((reader, back), (there, writer))
            finally:
                back.close()
        finally:
            self._open[caller] -= 1
            self._open += Counter()  # forgets those without any

    async def _checked(self, url: str) -> Target:
        """The address to connect to. Raises `Failed`."""
        try:
            parts = parsed(url)
            host, port = (parts.hostname or "").rstrip("."), parts.port or PORTS[parts.scheme]
            if self._hosts and not self._names(host, port):
                only = ", ".join(self._hosts[:8])
                raise Failed(
                    403, f"The wall lets commands reach only {only} (`terminal.network`), and not {host}:{port}."
                )
            if port not in PORTS.values() and port < FIRST_OPEN_PORT and not self._names(host, port, exactly=True):
                raise Failed(
                    403, f"The wall lets commands reach web sites, and not {host}:{port} (`terminal.network`)."
                )
            target = await self._addresses.check(url)
        except BadArguments as error:
            raise Failed(400, str(error)) from error
        except Refused as error:
            raise Failed(403, f"{error} (`terminal.network`)") from error
        except ToolError as error:
            raise Failed(502, str(error)) from error
        named = self._names(host, port, exactly=True) and port != self._port
        if not named and _is_here(urlsplit(target.connect).hostname or ""):
            raise Failed(403, f"The wall keeps commands from {host}:{port}, a service of this machine.")
        return target

    def _names(self, host: str, port: int, *, exactly: bool = False) -> bool:
        """Whether the list has this host; `exactly`: with this port."""
        entries = (ENTRY.fullmatch(entry) for entry in self._hosts)
        return any(
            fnmatchcase(host, found[1].strip("[]")) and (found[2] == str(port) or not (found[2] or exactly))
            for found in entries
            if found
        )


async def _head(reader: asyncio.StreamReader) -> Head:
    """Read a request up to its body. Raises `Failed`."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise Failed(400, f"The header of the request has more than {HEAD_BYTES >> 10} kB.") from error
    first, *lines = raw[:-4].decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    goal, _, version = rest.partition(" ")
    rows = [line.partition(":") for line in lines]
    fits = version in ("HTTP/1.0", "HTTP/1.1") and NAME.fullmatch(method) and PLAIN.fullmatch(first)
    if not fits or not all(NAME.fullmatch(name) and sep and PLAIN.fullmatch(value) for name, sep, value in rows):
        raise Failed(400, "This is no request of HTTP/1.1.")
    fields = tuple((name, value.strip()) for name, _, value in rows)
    if method == "CONNECT":
        if not re.fullmatch(r"[^/?#@]+:\d{1,5}", goal):
            raise Failed(400, "CONNECT takes a host and its port.")
        return Head(method=method, url=f"https://{goal}", fields=fields, tunnel=True)
    if not goal.lower().startswith("http://"):
        raise Failed(400, "This is a proxy: it takes whole addresses (http://...), and CONNECT for https.")
    return Head(method=method, url=goal, fields=fields, tunnel=False)


def _token(head: Head) -> str:
    given = next((value for name, value in head.fields if name.lower() == "proxy-authorization"), "")
    with suppress(ValueError):
        return base64.b64decode(given.partition(" ")[2]).decode("latin-1").rpartition(":")[2]
    return ""


async def _connected(target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the checked address: no second look-up of the name can differ. Raises `Failed`."""
    parts = urlsplit(target.connect)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(parts.hostname, parts.port or PORTS[parts.scheme])
    except (OSError, TimeoutError) as error:
        why = getattr(error, "strerror", "") or "no answer"
        raise Failed(502, f"{_place(target.url)} cannot be reached: {why}.") from error


def _passed_on(head: Head, target: Target) -> bytes:
    """The request as a server takes it. The connection serves this one alone: the next may be for another host."""
    parts = urlsplit(target.url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    named = {
        name.strip().lower() for key, value in head.fields if key.lower() == "connection" for name in value.split(",")
    }
    kept = [
        (name, value)
        for name, value in head.fields
        if not HOP_BY_HOP.fullmatch(name) and name.lower() not in named and name.lower() != "host"
    ]
    rows = [("Host", target.host), *kept, ("Connection", "close")]
    return "".join(
        (f"{head.method} {path} HTTP/1.1\r\n", *(f"{name}: {value}\r\n" for name, value in rows), "\r\n")
    ).encode("latin-1")


async def _pass(*ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Pass bytes on both ways until both have ended, or nothing has come for long."""
    try:
        async with asyncio.timeout(IDLE_SECONDS) as limit, asyncio.TaskGroup() as both:
            for source, sink in ways:
                both.create_task(_pump(source, sink, limit))
    except* OSError:
        pass  # one of the two has gone


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, limit: asyncio.Timeout) -> None:
    loop = asyncio.get_running_loop()
    while chunk := await source.read(CHUNK):
        sink.write(chunk)
        await sink.drain()
        limit.reschedule(loop.time() + IDLE_SECONDS)
    sink.write_eof()


async def _refuse(failed: Failed, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with the sentence, also as the reason: many programs show only that one. What is still sent is read for a
    moment, or the answer would be lost."""
    shown = failed.words.encode("ascii", "replace").decode()[:300]
    challenge = 'Proxy-Authenticate: Basic realm="Hermes"\r\n' if failed.status == 407 else ""
    writer.write(
        f"HTTP/1.1 {failed.status} {shown}\r\n{challenge}Content-Type: text/plain\r\n"
        f"Content-Length: {len(shown) + 1}\r\nConnection: close\r\n\r\n{shown}\n".encode()
    )
    with suppress(OSError, TimeoutError):
        writer.write_eof()
        async with asyncio.timeout(LINGER_SECONDS):
            while await reader.read(CHUNK):
                pass


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.netloc.removesuffix(f':{parts.port}')}:{parts.port or PORTS[parts.scheme]}"


def _is_here(number: str) -> bool:
    """Whether this is an address of this machine: only those can be bound."""
    with socket.socket(socket.AF_INET6 if ":" in number else socket.AF_INET, socket.SOCK_STREAM) as trial:
        try:
            trial.bind((number, 0))
        except OSError:
            return False
    return True
