"""The editor on the other side of the connection: updates that it is sent, and requests that it answers."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from acp import schema
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import CLIENT_METHODS, PROTOCOL_VERSION
from pydantic import BaseModel, ValidationError

from hermes_agent.acp.speech import Update
from hermes_agent.acp.transport import StdioTransport

T = TypeVar("T", bound=BaseModel)
UPDATE, PERMISSION = CLIENT_METHODS["session_update"], CLIENT_METHODS["session_request_permission"]
ELICITATION, READ = CLIENT_METHODS["elicitation_create"], CLIENT_METHODS["fs_read_text_file"]


class Unanswered(Exception):
    """The editor did not answer a request as the protocol says."""


class Editor:
    """The client of one connection: what it can do (`capabilities`), and the protocol's `version` that was agreed."""

    def __init__(self, connection: Connection, transport: StdioTransport) -> None:
        self._connection, self.transport = connection, transport
        self.capabilities, self.version = schema.ClientCapabilities(), PROTOCOL_VERSION

    @property
    def has_forms(self) -> bool:
        """Whether it shows forms."""
        elicitation = self.capabilities.elicitation
        return elicitation is not None and elicitation.form is not None

    @property
    def has_buffers(self) -> bool:
        """Whether it tells what its buffers hold."""
        return bool(self.capabilities.fs and self.capabilities.fs.read_text_file)

    async def update(self, session: str, update: Update) -> None:
        """Send an update; it waits in the queue."""
        await self.transport.send(
            {"jsonrpc": "2.0", "method": UPDATE, "params": {"sessionId": session, "update": dump(update)}}
        )

    async def ask(self, method: str, request: BaseModel, answer: type[T]) -> T:
        """Ask the editor; whoever cancels this withdraws the request. Raises `Unanswered`."""
        try:
            return answer.model_validate(await self._connection.send_request(method, dump(request)))
        except asyncio.CancelledError:
            if (number := self.transport.asked.get(asyncio.current_task())) is not None:
                params = {"requestId": number}
                await self.transport.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params})
            raise
        except (RequestError, ValidationError, ConnectionError) as error:
            raise Unanswered(str(error)) from error
        finally:
            self.transport.asked.pop(asyncio.current_task(), None)


def dump(value: BaseModel) -> dict[str, Any]:
    """A value of the schema as it goes out."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)
