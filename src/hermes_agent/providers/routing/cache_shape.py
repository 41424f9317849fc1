"""The hashes of a growing conversation, each message looked at once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from hermes_agent.core.messages import Message
from hermes_agent.core.model import ModelRequest
from hermes_agent.core.shape import Shape, marks_of
from hermes_agent.providers.pieces import json_bytes

HEX = 10


class CacheShape:
    """Takes over a sequence of messages that grows; where an earlier one is not the same object any more, it begins
    again from there."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._hashes: list[str] = []

    def shape(self, request: ModelRequest) -> Shape:
        """The shape of a request of this conversation."""
        hashes = self._follow(request.messages)
        return Shape(effort=request.effort, use_tools=request.use_tools, marks=marks_of(hashes))

    def _follow(self, messages: Sequence[Message]) -> list[str]:
        known = self._messages
        same = next(
            (place for place, (old, new) in enumerate(zip(known, messages, strict=False)) if old is not new),
            min(len(known), len(messages)),
        )
        del known[same:], self._hashes[same:]
        for message in messages[same:]:
            before = self._hashes[-1] if self._hashes else ""
            digest = hashlib.sha256(before.encode() + json_bytes(message)).hexdigest()[:HEX]
            self._hashes.append(digest)
            known.append(message)
        return self._hashes
