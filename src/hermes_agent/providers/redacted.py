"""Removes secrets from the replies of a model, also from the stream."""

from __future__ import annotations

import string
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace

from hermes_agent.core.messages import (
    Delta,
    Model,
    ModelRequest,
    Part,
    Remark,
    Reply,
    Retrying,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    Through,
)

LONGEST, CONTEXT = 8192, 512
"""Characters that are held back at most, and those before a new piece that may name the secret in it."""
SIGNS, SPACES = string.digits + string.ascii_letters + string.punctuation, " \t\r\n"
"""What words are made of that may be secrets, and what stands between. In other alphabets words may have no end."""
BEGIN, END, DASHES = "-----BEGIN", "-----END", "-----"


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


class HiddenStream:
    """Redacts pieces of a text. `take` gives what no later piece can turn into a part of a secret, `rest` gives what
    was held back until then."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._text = self._shown = ""
        self._done = 0

    def take(self, piece: str) -> str:
        """What may be shown now."""
        self._text += piece
        return self._until(max(self._done, len(self._text) - LONGEST, self._settled()))

    def _settled(self) -> int:
        """Where the last word begins, or the first of those with breaks alone between, or a key of many lines."""
        text, at, gap = self._text, len(self._text), "\n"
        while "\n" in gap:
            word = len(text[:at].rstrip(SIGNS))
            at = len(text[:word].rstrip(SPACES))
            gap = text[at:word]
        key = text.rfind(BEGIN, self._done)
        end = text.find(DASHES, text.find(END, key) + len(END)) if key >= 0 and END in text[key:] else -1
        return min(word, key) if key >= 0 and not 0 <= end < word - len(DASHES) else word

    def rest(self) -> str:
        """What was held back; another text may follow."""
        last = self._until(len(self._text))
        self._text, self._shown, self._done = "", "", 0
        return last

    def _until(self, end: int) -> str:
        if end <= self._done:
            return ""
        shown = self._redact(self._text[:end])
        same = next((at for at, sign in enumerate(self._shown) if shown[at : at + 1] != sign), len(self._shown))
        self._shown, self._done = shown, end
        if end > 2 * CONTEXT and (begin := self._text.find(" ", end - CONTEXT, end)) >= 0:
            before, after = self._redact(self._text[:begin]), self._redact(self._text[begin:end])
            if before + after == shown:  # Nothing of a secret is in both.
                self._text, self._shown, self._done = self._text[begin:], after, end - begin
        return shown[same:]
