"""One connection of a client: how large and how slow the head of a request may be, and how many there are."""

from __future__ import annotations

import asyncio
import logging
import resource
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hermes_agent.api.events import written
from hermes_agent.api.problems import Problem

LARGEST_HEAD = 65_536
"""Bytes of a request's first line and headers, as long as they are not whole."""
HEAD_SECONDS = 30.0
"""Seconds until a head is whole, from when the connection is made or the first byte of a later request came."""
SHARE = 0.4
"""Of the files that the process may have open: how many may be connections of one server. The rest is for its work."""
MOST = 4096
"""Connections of one server, however many files may be open: each may hold a head that is not whole."""

log = logging.getLogger(__name__)
log.setLevel(logging.WARNING)  # The library would write a line for every connection.


def most_connections() -> int:
    """Connections of one server at a time."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if files == resource.RLIM_INFINITY else min(MOST, int(files * SHARE))


class Connection(HttpToolsProtocol):
    """As the library has it, within limits. Whoever sends what is no request, or none, is told so or left, and nothing
    is written down about it: a stranger fills no log."""

    head_seconds = HEAD_SECONDS
    most: int | None = None

    def __init__(self, *args: Any, **more: Any) -> None:  # noqa: ANN401  the library's own
        super().__init__(*args, **more)
        self.logger = log
        self._in_head, self._is_too_large = True, False
        self._size = self._answering = 0
        self._slow: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the library has it
        """Take it, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > (most_connections() if self.most is None else self.most):
            transport.abort()
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        if self._in_head:
            self._size += len(data)
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # It is answered like any other request: there is nothing else to speak here.
        except httptools.HttpParserError:
            if not self._is_too_large:
                self._refuse(400, "That is no request of HTTP/1.1.", "invalid_http")
                return
        if self._is_too_large or (self._in_head and self._size > LARGEST_HEAD):
            self._refuse(431, f"The headers are larger than {LARGEST_HEAD:,} bytes.", "headers_too_large")
        elif self._in_head and self._size:
            self._wait()

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head, self._size = True, self._size or 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is whole. Raises `ValueError`, which ends the reading, where it is too large."""
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > LARGEST_HEAD:
            self._is_too_large = True
            raise ValueError
        self._in_head, self._size = False, 0
        self._answering += 1
        self._wait_no_more()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """What comes now is the head of the next one."""
        self._in_head = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A request has its answer; the rest of a body that nobody reads does not come for ever."""
        self._answering -= 1
        if not self._in_head:
            self._wait()
        super().on_response_complete()

    def _wait(self) -> None:
        if self._slow is None:
            self._slow = self.loop.call_later(self.head_seconds, self._late)

    def _wait_no_more(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None

    def _late(self) -> None:
        self._slow = None
        if self._answering:  # The request before it is still being answered.
            self._wait()
        elif self._size:
            self._refuse(408, "The request did not arrive in time.", "request_timeout")
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str, code: str) -> None:
        """Answer what never became a request, and close; where another answer has begun, only close."""
        self._wait_no_more()
        if not self._answering or (self._answering == 1 and not self.cycle.response_started):
            body = written(Problem(status, message, code=code).body)
            head = (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()
