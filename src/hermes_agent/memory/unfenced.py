"""Removes recalled memory (`<memory-context>` blocks) that the model repeats in its replies."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from hermes_agent.core.messages import Delta, Model, ModelRequest, Reply, Text, TextDelta, Through
from hermes_agent.memory.recall import unfenced

OPENING, CLOSING = "<memory-context", "</memory-context>"


class Unfenced(Through):
    """Wraps a model: removes recalled memory (`<memory-context>` blocks) from the text of its replies before that
    is streamed or stored. `answered` gets the session and text of each reply without tool calls."""

    def __init__(self, model: Model, answered: Callable[[str, str], None]) -> None:
        super().__init__(model)
        self._answered = answered

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """As the model's."""
        strainer = Strainer()
        async with aclosing(self._model.ask(request)) as deltas:
            async for delta in deltas:
                match delta:
                    case TextDelta(text=text):
                        if passed := strainer.take(text):
                            yield TextDelta(text=passed)
                    case Reply(message=message):
                        if rest := strainer.rest():
                            yield TextDelta(text=rest)
                        parts = tuple(
                            replace(part, text=unfenced(part.text)) if isinstance(part, Text) else part
                            for part in message.parts
                        )
                        told = replace(message, parts=parts)
                        if not told.tool_calls:
                            self._answered(request.session, told.text)
                        yield replace(delta, message=told)
                    case _:
                        yield delta


class Strainer:
    """Streaming filter that removes `<memory-context>` blocks, tags and content; holds back only text that may be
    the start of a tag."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False

    def take(self, text: str) -> str:
        """The part of the text so far that may be shown."""
        self._held += text
        passed = ""
        while True:
            mark = CLOSING if self._inside else OPENING
            place = self._held.lower().find(mark)
            if place < 0:
                break
            if not self._inside:
                passed += self._held[:place]
            self._held = self._held[place + len(mark) :]
            self._inside = not self._inside
        kept = _beginning(self._held.lower(), mark)
        if not self._inside:
            passed += self._held[: len(self._held) - kept]
        self._held = self._held[len(self._held) - kept :]
        return passed

    def rest(self) -> str:
        """The text held back that was no mark."""
        rest, self._held = ("" if self._inside else self._held), ""
        return rest


def _beginning(text: str, mark: str) -> int:
    """How many letters at the end of the text are the beginning of the mark."""
    return next((size for size in range(min(len(text), len(mark) - 1), 0, -1) if text.endswith(mark[:size])), 0)
