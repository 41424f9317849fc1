"""The editor on the other side of the connection: updates that it is sent, and requests that it answers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, TypeVar

from acp import schema
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import CLIENT_METHODS, PROTOCOL_VERSION
from pydantic import BaseModel, ValidationError

from hermes_agent.acp.transport import StdioTransport, asked_id

T = TypeVar("T", bound=BaseModel)
PERMISSION, FORM = CLIENT_METHODS["session_request_permission"], CLIENT_METHODS["elicitation_create"]
BUFFER_SECONDS = 2.0


class Unanswered(Exception):
    """The editor did not answer a request as the protocol says."""


class Editor:
    """The client of one connection: the protocol's `version` that was agreed, and whether it shows forms, and tells
    what its buffers hold."""

    def __init__(self, connection: Connection, transport: StdioTransport) -> None:
        self._connection, self.transport = connection, transport
        self.version, self.has_forms, self.has_buffers, self.has_terminal = PROTOCOL_VERSION, False, False, False

    def know(self, said: schema.InitializeRequest) -> None:
        """Keep what it says of itself."""
        can = said.client_capabilities or schema.ClientCapabilities()
        self.has_forms = bool(can.elicitation and can.elicitation.form is not None)
        self.has_buffers = bool(can.fs and can.fs.read_text_file)
        self.has_terminal = bool(can.auth and can.auth.terminal)

    async def update(self, session: str, update: BaseModel) -> None:
        """Send an update, when there is room for it."""
        await self.transport.room()
        await self._notify(CLIENT_METHODS["session_update"], {"sessionId": session, "update": dump(update)})

    async def read(self, session: str, path: str) -> str | None:
        """What it holds of a file; None where it tells nothing."""
        request = schema.ReadTextFileRequest(session_id=session, path=path)
        with suppress(Unanswered, TimeoutError):
            async with asyncio.timeout(BUFFER_SECONDS):
                return (
                    await self.ask(CLIENT_METHODS["fs_read_text_file"], request, schema.ReadTextFileResponse)
                ).content
        return None

    async def ask(self, method: str, request: BaseModel, answer: type[T]) -> T:
        """Ask the editor; whoever cancels this withdraws the request. Raises `Unanswered`."""
        asked_id.set(None)
        try:
            return answer.model_validate(await self._connection.send_request(method, dump(request)))
        except asyncio.CancelledError:
            if (number := asked_id.get()) is not None:
                await self._notify("$/cancel_request", {"requestId": number})
            raise
        except (RequestError, ValidationError, ConnectionError) as error:
            raise Unanswered(str(error)) from error

    async def _notify(self, method: str, params: dict[str, Any]) -> None:
        await self.transport.send({"jsonrpc": "2.0", "method": method, "params": params})


def dump(value: BaseModel) -> dict[str, Any]:
    """A value of the schema as it goes out."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)
