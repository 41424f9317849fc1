"""The text of a run as a stream that takes nothing back."""

from __future__ import annotations

from hermes_agent.core.events import Event, Replied, TurnStarted
from hermes_agent.core.messages import Retrying, StopReason, TextDelta

BETWEEN = "\n\n"
"""What stands between the texts of two turns of a run, as they are streamed."""


class Words:
    """Converts a run's events into the text to stream to a client. Sent text cannot be taken back, so a retried model
    call continues from where its text differs.

    Text that was not seen live (the run is in another process), or not from the turn's start, is sent with the turn's
    complete reply.
    """

    def __init__(self) -> None:
        self._is_seen = False
        self._sent = ""
        self._again: str | None = None
        self._before = ""
        self._last = ""

    def take(self, event: Event) -> str:
        """The text that this event adds to the stream."""
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
        """The part of the final reply that was not streamed yet."""
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
        """The turn's text that was not seen live; empty if it differs from what was sent."""
        sent, before = self._sent, self._before
        self._sent, self._again, self._last, self._is_seen = "", None, text, False
        self._before = "" if cut else BETWEEN
        return f"{before if not sent else ''}{text[len(sent) :]}" if text.startswith(sent) else ""
