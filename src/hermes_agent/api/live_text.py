"""A run's words while they come: what of them a stream has sent, and what is still to be sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hermes_agent.api.history import BETWEEN
from hermes_agent.api.run_view import RunView, asked_for
from hermes_agent.api.service import AgentService, Begun
from hermes_agent.core.events import Event, Replied, TurnStarted
from hermes_agent.core.model import Retrying, StopReason, TextDelta


class Words:
    """What was sent cannot be taken back: an attempt that begins anew is sent from where it differs.

    Words that were not seen live (the run is in another process), or not from where their turn began, come with the
    turn's whole reply.
    """

    def __init__(self) -> None:
        self._is_seen = False
        self._sent = ""
        self._again: str | None = None
        self._before = ""
        self._last = ""

    def take(self, event: Event) -> str:
        """What this event adds to the stream."""
        match event:
            case TurnStarted():
                self._is_seen = True
                self._again = "" if self._sent else None
            case TextDelta(text=text) if self._is_seen:
                return self._more(text)
            case Retrying() if self._sent:
                self._again = ""
            case Replied(message=message, stop=stop) if message.text:
                return self._whole(message.text, cut=stop is StopReason.LENGTH)
            case _:
                pass
        return ""

    def rest(self, text: str) -> str:
        """What the run's end says beyond the words of its last turn."""
        if not text or (text.endswith(self._last) and self._last):
            return ""
        if self._last and text.startswith(self._last):
            return text[len(self._last) :]
        return f"{self._before}{text}"

    def _more(self, text: str) -> str:
        if self._again is None:
            self._sent += text
            before, self._before = self._before, ""
            return f"{before}{text}"
        self._again += text
        if self._sent.startswith(self._again):
            return ""
        again, self._again = self._again, None
        sent, self._sent = self._sent, again
        return again[len(sent) :] if again.startswith(sent) else f"{BETWEEN}{again}"

    def _whole(self, text: str, *, cut: bool) -> str:
        """The turn is whole: what of it was not seen live, and nothing where it went another way."""
        sent, before = self._sent, self._before
        self._sent, self._again, self._last, self._is_seen = "", None, text, False
        self._before = "" if cut else BETWEEN
        return f"{before if not sent else ''}{text[len(sent) :]}" if text.startswith(sent) else ""


async def words_of(service: AgentService, begun: Begun, story: RunView) -> AsyncGenerator[str, None]:
    """The words of a run as they come, each turn's apart, until it rests; then what is left of its reply."""
    words = Words()
    async with aclosing(service.listen(begun, story)) as events:
        async for seen in events:
            if text := words.take(seen.event):
                yield text
    if story.status != "failed" and (text := words.rest(shown(story))):
        yield text


def shown(story: RunView) -> str:
    """What stands for the reply of a run that rests: its text, or what it asks."""
    return story.text if story.is_over else asked_for(story)
