"""Removes secrets from the replies of a model, also from the stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace

from hermes_agent.core.messages import Part, Text, Thinking
from hermes_agent.core.model import (
    Delta,
    Model,
    ModelRequest,
    Remark,
    Reply,
    Retrying,
    TextDelta,
    ThinkingDelta,
    Through,
)
from hermes_agent.host.hidden_stream import HiddenStream


class Redacted(Through):
    """Wraps a model: nobody sees, stores or sends a secret that it says in its words and thoughts. What it says to
    tools stays as it is."""

    def __init__(self, model: Model, redact: Callable[[str], str]) -> None:
        super().__init__(model)
        self._redact = redact

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """As the model's."""
        passing = _Passing(self._redact)
        async with aclosing(self._model.ask(request)) as deltas:
            async for delta in deltas:
                for passed in passing.take(delta):
                    yield passed


class _Passing:
    """Redacts the deltas of one stream; holds back what may become a secret."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._stream = HiddenStream(redact)
        self._kind: type[TextDelta | ThinkingDelta] = TextDelta

    def take(self, delta: Delta | Reply) -> Iterator[Delta | Reply]:
        """What may be passed on now."""
        if not isinstance(delta, self._kind) and (rest := self._stream.rest()) and not isinstance(delta, Retrying):
            yield self._kind(text=rest)
        match delta:
            case TextDelta() | ThinkingDelta():
                self._kind = type(delta)
                if text := self._stream.take(delta.text):
                    yield self._kind(text=text)
            case Reply(message=message):
                parts = tuple(self._clean(part) for part in message.parts)
                yield replace(delta, message=replace(message, parts=parts))
            case Remark(text=text):
                yield replace(delta, text=self._redact(text))
            case _:
                yield delta

    def _clean(self, part: Part) -> Part:
        if not isinstance(part, Text | Thinking) or (text := self._redact(part.text)) == part.text:
            return part
        if isinstance(part, Thinking):  # Its signature is for other words.
            return replace(part, text=text, opaque="", maker="")
        return replace(part, text=text)
