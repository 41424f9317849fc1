"""IMAP client over one connection in its own thread: search, fetch and IDLE."""

from __future__ import annotations

import asyncio
import datetime
import imaplib
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BufferedReader
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import NotNow, TokenRefused
from hermes_agent.host.late import libraries

if TYPE_CHECKING:
    from imap_tools.mailbox import BaseMailBox

T = TypeVar("T")
Found = tuple[int, int, int, str, tuple[Any, ...]]  # what getaddrinfo gives
ANSWER_SECONDS = 60.0
"""The longest that the server may take for an answer."""
IDLE_SECONDS = 240.0
"""How long one IDLE lasts: routers forget a silent connection sooner than after the 29 minutes of RFC 2177."""
LOOK_SECONDS = 60.0
"""How long until the next look where the server has no IDLE."""
LATER = re.compile(r"\[(UNAVAILABLE|INUSE|LIMIT|SERVERBUG)\b", re.IGNORECASE)
"""Says of a login that was refused that the server is in trouble, and nothing of the password (RFC 5530, 3)."""
SIZE = re.compile(rb"RFC822\.SIZE (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Address of a mail server; `security` is `tls`, `starttls` or `none` (this machine only)."""

    host: str
    port: int
    security: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """User and password for an IMAP server, and the mail folder to read."""

    user: str
    password: str
    folder: str


class Mailbox:
    """An IMAP connection; calls run one at a time in its thread. Raises `NotNow` for a broken connection,
    `TokenRefused` for a wrong password; after either it is unusable."""

    def __init__(self, address: Address, login: Login) -> None:
        self._address = address
        self._login = login
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="imap")
        self._line: socket.socket | None = None
        self._cut: socket.socket | None = None
        self._box: BaseMailBox | None = None
        self._closed = False

    async def open(self) -> None:
        """Connect, log in and select the folder."""
        self._line = await connected(self._address)
        self._cut = self._line.dup()  # Encryption takes the other one over.
        await self._do(self._open)

    async def unread(self, since: datetime.date) -> list[str]:
        """The UIDs of unread mail that arrived since that day, oldest first."""
        return await self._do(lambda box: self._search(box, f"UNSEEN SINCE {since:%d-%b-%Y}"))

    async def with_header(self, name: str, message_id: str) -> list[str]:
        """UIDs of mail with that Message-ID (as matched by `reading.ID`) in that header."""
        return await self._do(lambda box: self._search(box, f'HEADER {name} "{message_id}"'))

    async def size(self, uid: str) -> int:
        """Size of a mail in bytes; 0 if it is gone."""
        return await self._do(lambda box: self._size(box, uid))

    async def raw(self, uid: str, most: int = 0) -> bytes:
        """A mail's bytes, or the first `most`; leaves it unread. Empty if it is gone."""
        what = f"BODY.PEEK[]<0.{most}>" if most else "BODY.PEEK[]"
        return await self._do(lambda box: self._fetch(box, uid, what))

    async def head(self, uid: str, most: int) -> bytes:
        """A mail's headers, at most `most` bytes."""
        return await self._do(lambda box: self._fetch(box, uid, f"BODY.PEEK[HEADER]<0.{most}>"))

    async def mark_read(self, uid: str) -> None:
        """Mark a mail as read, so that `unread` no longer finds it."""
        await self._do(lambda box: _checked(box.client.uid("STORE", uid, "+FLAGS.SILENT", r"(\Seen)")))

    async def wait(self) -> None:
        """Wait until there may be new mail."""
        if not await self._do(self._idle):
            await asyncio.sleep(LOOK_SECONDS)

    async def close(self) -> None:
        """Close the connection, even during a blocking call. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._cut is not None:
            with suppress(OSError), self._cut as cut:
                cut.shutdown(socket.SHUT_RDWR)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._shut)
        self._thread.shutdown(wait=False)

    async def _do(self, call: Callable[[BaseMailBox], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._called, call)

    def _called(self, call: Callable[[BaseMailBox], T]) -> T:
        if self._box is None:
            self._box = self._begun()
        try:
            return call(self._box)
        except (OSError, imaplib.IMAP4.error, EOFError) as error:
            raise NotNow(f"The connection to the mailbox broke: {error}") from error

    def _begun(self) -> BaseMailBox:
        where, line = self._address, self._line
        if line is None:
            raise NotNow("The mailbox is not open.")
        context = None if where.security == "none" else ssl.create_default_context()
        try:
            line.settimeout(ANSWER_SECONDS)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None and where.security == "tls":
                line = context.wrap_socket(line, server_hostname=where.host)
            box = _speaking_over(line, where.host)
            if where.security == "starttls":
                _encrypt(box, context)
        except (OSError, imaplib.IMAP4.error, EOFError) as error:
            raise NotNow(f"The mail server {where.host}:{where.port} cannot be reached: {error}") from error
        return box

    def _open(self, box: BaseMailBox) -> None:
        login = self._login
        try:
            box.login(login.user, login.password, initial_folder=None)
        except libraries.imap_tools.MailboxLoginError as error:
            if LATER.search(str(error)):
                raise NotNow(f"The mail server {self._address.host} lets nobody in for now: {error}") from error
            raise TokenRefused(
                f"The mailbox {login.user} at {self._address.host} refuses the password (`EMAIL_PASSWORD`)."
            ) from error
        except imaplib.IMAP4.abort:
            raise
        except imaplib.IMAP4.error as error:
            raise TokenRefused(f"The mailbox {login.user} lets nobody in: {error}") from error
        chosen: tuple[str, list[Any]] = box.client.select(f'"{login.folder}"')
        _checked(chosen)

    def _search(self, box: BaseMailBox, criteria: str) -> list[str]:
        box.client.untagged_responses.pop("EXISTS", None)
        answer: tuple[str, list[Any]] = box.client.uid("SEARCH", criteria)
        found = _flat(_checked(answer))
        return sorted(b" ".join(found).decode().split(), key=int)

    def _size(self, box: BaseMailBox, uid: str) -> int:
        found = SIZE.search(b" ".join(_flat(_checked(box.client.uid("FETCH", uid, "(RFC822.SIZE)")))))
        return int(found[1]) if found else 0

    def _fetch(self, box: BaseMailBox, uid: str, what: str) -> bytes:
        for each in _checked(box.client.uid("FETCH", uid, f"({what})")):
            if isinstance(each, tuple):
                return bytes(each[1])
        return b""

    def _idle(self, box: BaseMailBox) -> bool:
        """Wait with IDLE if supported. Returns whether it waited or mail has arrived already."""
        client = box.client
        if "IDLE" not in client.capabilities:
            return False
        if "EXISTS" not in client.untagged_responses:  # Otherwise mail came while the last search was answered.
            idle: Any = box.idle
            idle.start()
            if "EXISTS" not in client.untagged_responses and not _read_ahead(client):
                idle.poll(IDLE_SECONDS)
            idle.stop()
        return True

    def _shut(self) -> None:
        if self._box is not None:
            with suppress(OSError, imaplib.IMAP4.error):
                self._box.client.shutdown()
            self._box = None
        if self._line is not None:
            self._line.close()


async def connected(where: Address) -> socket.socket:
    """Open a socket outside of the thread, where the wait can be cancelled. Raises `NotNow`."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            *others, last = await loop.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)
            return await _first(others, last)
    except OSError as error:
        why = str(error) or "no answer"
        raise NotNow(f"The mail server {where.host}:{where.port} cannot be reached: {why}") from error


async def _first(others: Sequence[Found], last: Found) -> socket.socket:
    for each in others:
        with suppress(OSError):
            return await _reached(*each)
    return await _reached(*last)


async def _reached(family: int, kind: int, protocol: int, _: str, address: tuple[Any, ...]) -> socket.socket:
    line = socket.socket(family, kind, protocol)
    try:
        line.setblocking(False)
        await asyncio.get_running_loop().sock_connect(line, address)
    except BaseException:
        line.close()
        raise
    return line


def _speaking_over(line: socket.socket, host: str) -> BaseMailBox:
    """An imap-tools mailbox over an existing socket."""

    class Client(imaplib.IMAP4):
        def open(self, host: str = "", port: int = 0, timeout: float | None = None) -> None:  # noqa: ARG002  as imaplib calls it
            self.host, self.sock, self.file = host, line, line.makefile("rb")

    class Box(libraries.imap_tools.BaseMailBox):  # type: ignore[misc, name-defined]  # loaded when it is needed
        def _get_mailbox_client(self) -> imaplib.IMAP4:
            return Client(host)

    box: BaseMailBox = Box()
    return box


def _read_ahead(client: imaplib.IMAP4) -> bool:
    """Whether the client's buffer holds unread data, which polling the socket would miss."""
    patience, buffer = client.sock.gettimeout(), cast(BufferedReader, client.file)
    client.sock.settimeout(0)
    try:
        return bool(buffer.peek(1))
    except OSError:  # Nothing: an encrypted connection says so in its own way.
        return False
    finally:
        client.sock.settimeout(patience)


def _encrypt(box: BaseMailBox, context: ssl.SSLContext | None) -> None:
    """STARTTLS; closes the connection on failure, which imap-tools would leave open."""
    try:
        box.client.starttls(context)
    except (OSError, imaplib.IMAP4.error):
        with suppress(OSError):
            box.client.shutdown()
        raise


def _checked(answer: tuple[str, list[bytes | tuple[bytes, bytes] | None]]) -> list[bytes | tuple[bytes, bytes] | None]:
    status, data = answer
    if status != "OK":
        raise imaplib.IMAP4.error(f"{status} {data[0]!r}")
    return data


def _flat(data: list[bytes | tuple[bytes, bytes] | None]) -> list[bytes]:
    return [piece for each in data for piece in (each if isinstance(each, tuple) else (each,)) if piece]
