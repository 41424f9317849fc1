"""A WebSocket to a platform: JSON in and out; whatever ends it is `NotNow` with the reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import NotNow
from hermes_agent.gateway.dispatcher import first_of
from hermes_agent.host.http import Http
from hermes_agent.host.late import libraries

if TYPE_CHECKING:
    from httpx2.websockets import AsyncWebSocketSession

LARGEST_MESSAGE = 4_000_000
"""Bytes of one message; Discord tells of a large server in about one million."""


class Closed(NotNow):
    """The platform ended the connection, with a code that may say why."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Socket:
    """An open connection."""

    def __init__(self, session: AsyncWebSocketSession) -> None:
        self._session = session

    async def send(self, value: dict[str, Any]) -> None:
        """Raises `NotNow`."""
        try:
            await self._session.send_text(json.dumps(value))
        except libraries.websockets.HTTPXWSException as error:
            raise NotNow("The connection broke.") from error

    async def leave(self, code: int) -> None:
        """End the connection with a code; one that is ended already stays so."""
        await self._session.close(code)

    async def receive(self, patience: float | None = None) -> dict[str, Any]:
        """The next message, an empty one where it was no JSON object. Raises `Closed`; `NotNow` after that many seconds
        of silence."""
        try:
            async with asyncio.timeout(patience):
                text = await self._session.receive_text()
        except TimeoutError as error:
            raise NotNow("The platform is silent.") from error
        except libraries.websockets.WebSocketDisconnect as error:
            why = f"{error.code} {error.reason}".strip()
            raise Closed(f"The platform ended the connection ({why}).", error.code) from error
        except libraries.websockets.HTTPXWSException as error:
            raise Closed("The connection broke.", 1006) from error
        try:
            found = json.loads(text)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


@asynccontextmanager
async def websocket(http: Http, url: str, *, leaves: int = 1000) -> AsyncIterator[Socket]:
    """A connection until the block ends, which is left with the code `leaves`. Raises `NotNow` where none comes about;
    what the block raises comes out as it is, though the library works in a task group."""
    plain = url.replace("ws", "http", 1)
    try:
        async with http.client(plain).websocket(
            plain, max_message_size_bytes=LARGEST_MESSAGE, keepalive_ping_interval_seconds=20.0
        ) as session:
            socket = Socket(session)
            try:
                yield socket
            finally:
                await socket.leave(leaves)
    except BaseExceptionGroup as group:
        raise first_of(group) from group
    except libraries.websockets.WebSocketUpgradeError as error:
        raise NotNow(f"The platform opens no connection ({error.response.status_code}).") from error
    except http.failures as error:
        raise NotNow(f"The platform cannot be reached: {error}") from error


def require(extra: str) -> None:
    """Raise `ConfigError` where the library for WebSockets is not installed."""
    try:
        libraries.wsproto  # noqa: B018 - whether it is here
    except ImportError as error:
        raise ConfigError(f"The {extra} channel needs more: pip install 'hermes-runtime[{extra}]'.") from error
