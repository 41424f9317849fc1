"""Discord's REST interface: a call, and what its failures mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hermes_agent.core.outbound import Attachment
from hermes_agent.gateway.channel import ChannelError, MessageGone, NeverHere
from hermes_agent.gateway.service import Answer, Service
from hermes_agent.gateway.upload import form

UNKNOWN_CHANNEL, UNKNOWN_MESSAGE = 10003, 10008
GONE = frozenset({UNKNOWN_MESSAGE, 50005, 50021})
"""The message is not there, is somebody else's, or cannot be changed."""

UNANSWERABLE = frozenset({160002, 160009, 160010})
"""Nothing may answer a message there: the history of the channel may not be read, or the message not be shown."""


class Unanswerable(NeverHere):
    """The message that was to be answered may not be: the same words can be sent without that."""


class Rest:
    """Discord by one token. `base` is `https://discord.com/api/v10` without a slash at the end."""

    def __init__(self, service: Service, base: str) -> None:
        self._service = service
        self._base = base

    async def call(
        self, method: str, path: str, content: Mapping[str, Any] | None = None, *, reads: bool = False
    ) -> dict[str, Any]:
        """The answer; an empty one where there is none. Raises `ChannelError`."""
        return _good(await self._service.call(method, f"{self._base}/{path}", content=content, reads=reads))

    async def post_file(self, path: str, content: Mapping[str, Any], file: Attachment) -> dict[str, Any]:
        """Post a message with a file."""
        body = await form("files[0]", file, {"payload_json": content})
        return _good(await self._service.call("POST", f"{self._base}/{path}", content=body))


def _good(answer: Answer) -> dict[str, Any]:
    if answer.status >= 400:
        raise meaning(answer)
    return answer.values() if answer.status != 204 else {}


def meaning(answer: Answer) -> ChannelError:
    """The failure that an answer from 400 on is."""
    try:
        found = json.loads(answer.body)
        code, words = int(found.get("code", 0)), str(found.get("message", ""))
    except (ValueError, AttributeError, TypeError):
        code, words = 0, ""
    if code in UNANSWERABLE:
        return Unanswerable(f"Discord lets nothing answer that message: {words} ({code}).")
    if code in GONE:
        return MessageGone(f"The message is gone or stays as it is ({words}).")
    return NeverHere(f"Discord refuses it: {answer.status} {words} ({code}).")
