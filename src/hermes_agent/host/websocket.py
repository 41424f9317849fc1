"""WebSocket client: JSON messages; whatever ends a connection is `SocketClosed`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.host.http import Http
from hermes_agent.host.late import libraries
from hermes_agent.host.tasks import first_of

if TYPE_CHECKING:
    from httpx2.websockets import AsyncWebSocketSession

LARGEST_MESSAGE = 4_000_000
"""Bytes of one message; Discord tells of a large server in about one million."""


class SocketClosed(HermesError):
    """The connection is closed or never came about; `code` is the close code, 1006 if there was none."""

    def __init__(self, message: str, code: int = 1006) -> None:
        super().__init__(message)
        self.code = code


class Socket:
    """An open WebSocket connection."""

    def __init__(self, session: AsyncWebSocketSession) -> None:
        self._session = session

    async def send(self, value: dict[str, Any]) -> None:
        """Send a JSON message. Raises `SocketClosed`."""
        try:
            await self._session.send_text(json.dumps(value))
        except libraries.websockets.HTTPXWSException as error:
            raise SocketClosed("The connection broke.") from error

    async def leave(self, code: int) -> None:
        """Close the connection with a code, unless it is closed."""
        await self._session.close(code)

    async def receive(self, patience: float | None = None) -> dict[str, Any]:
        """Receive the next message; empty if it is no JSON object. Raises `SocketClosed`, also after that many
        seconds of silence."""
        try:
            async with asyncio.timeout(patience):
                text = await self._session.receive_text()
        except TimeoutError as error:
            raise SocketClosed("The platform is silent.") from error
        except libraries.websockets.WebSocketDisconnect as error:
            why = f"{error.code} {error.reason}".strip()
            raise SocketClosed(f"The platform ended the connection ({why}).", error.code) from error
        except libraries.websockets.HTTPXWSException as error:
            raise SocketClosed("The connection broke.") from error
        try:
            found = json.loads(text)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


@asynccontextmanager
async def websocket(http: Http, url: str, *, leaves: int = 1000) -> AsyncIterator[Socket]:
    """Context manager: connect, and close with the code `leaves`. Raises `SocketClosed` if the connection fails;
    errors of the block are raised as they are, not as a group."""
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
        raise SocketClosed(f"The platform opens no connection ({error.response.status_code}).") from error
    except http.failures as error:
        raise SocketClosed(f"The platform cannot be reached: {error}") from error


def require(extra: str) -> None:
    """Raise `ConfigError` if the WebSocket library is not installed."""
    try:
        libraries.wsproto  # noqa: B018 - whether it is here
    except ImportError as error:
        raise ConfigError(f"The {extra} channel needs more: pip install 'hermes-runtime[{extra}]'.") from error
