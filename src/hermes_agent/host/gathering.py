"""Connections on which a request goes out in one piece: its head waits for its body, which saves a call of the kernel
and a round of the event loop for each request."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import httpcore2
import httpx2

HEAD = re.compile(rb"[A-Z]+ [^ ]+ HTTP/1\.1\r\n")
"""How a request begins. Of what else is written, as the frames of a WebSocket are, nothing is held."""


class Gathering(httpcore2.AsyncNetworkStream):
    """A stream on which the head of a request waits for what is written, or read, next."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._head = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  the library's shape
        """The next bytes, once everything that was written is sent."""
        if self._head:
            with suppress(httpcore2.WriteError):  # What the server had to say before it closed is still to be read.
                await self._send(b"", timeout)
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  the library's shape
        """Send the bytes, or hold them where they are a request's head."""
        if not self._head and HEAD.match(buffer) and buffer.endswith(b"\r\n\r\n"):
            self._head = buffer
        elif buffer:
            await self._send(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection; what is held then is never sent."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  the library's shape
    ) -> httpcore2.AsyncNetworkStream:
        """The same within TLS."""
        return Gathering(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  the library's shape
        """What the connection says of itself."""
        return self._stream.get_extra_info(info)

    async def _send(self, buffer: bytes, timeout: float | None) -> None:  # noqa: ASYNC109  the library's shape
        head, self._head = self._head, b""
        await self._stream.write(head + buffer, timeout)


class Network(httpcore2.AnyIOBackend):
    """The library's own connections, each gathering."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the library's shape
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A new connection."""
        return Gathering(await super().connect_tcp(host, port, timeout, local_address, socket_options))


class Transport(httpx2.AsyncHTTPTransport):
    """The library's transport over such connections."""

    def __init__(self, verify: ssl.SSLContext, limits: httpx2.Limits) -> None:
        super().__init__(verify=verify, limits=limits)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=verify,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=Network(),
        )
