"""Events as lines for a person, with times and counts."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_agent.core.effects import Effect
from hermes_agent.core.events import (
    Event,
    MessageTaken,
    Notice,
    PrefixFrozen,
    Replied,
    RunEnded,
    RunStarted,
    Seen,
    ToolEnded,
    ToolStarted,
    TurnStarted,
)
from hermes_agent.core.messages import ToolResult

LONGEST = 90


@dataclass(slots=True)
class Tally:
    """What one task took, counted from the events. `committed` are the events that were durable before they were
    shown; live ones carry the number of a durable one and are not counted."""

    model_calls: int = 0
    tool_calls: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    committed: int = 0
    seconds: float = 0.0

    def add(self, seen: Seen) -> None:
        """Count an event."""
        match seen.event:
            case TurnStarted():
                self.model_calls += 1
            case ToolEnded():
                self.tool_calls += 1
            case Replied(usage=usage):
                self.input += usage.input
                self.cached += usage.cached
                self.output += usage.output
        self.committed = max(self.committed, seen.number)

    def line(self) -> str:
        """One line."""
        return (
            f"{self.model_calls} model calls, {self.tool_calls} tool calls, {self.input + self.output:,} tokens "
            f"({self.cached:,} of them cached), {self.committed} events committed, {self.seconds:.1f} s"
        )


class Teller:
    """Tells events one by one. It remembers which call is which, because several run side by side."""

    def __init__(self) -> None:
        self._started: dict[str, ToolStarted] = {}

    def tell(self, event: Event) -> str:
        """The event in a line; empty for one that says nothing of its own."""
        words = ""
        match event:
            case RunStarted(resumed=True):
                words = "takes up the interrupted run"
            case PrefixFrozen(sections=sections):
                size = sum(section.tokens for section in sections)
                words = f"prompt frozen: {len(sections)} sections, {size:,} tokens"
            case MessageTaken(message=message):
                words = f"heard: {_cut(message.text)}"
            case Replied(message=message, usage=usage, seconds=seconds) if message.tool_calls:
                words = f"model, {seconds:.2f} s, {usage.output} tokens: {_cut(message.text)}"
            case ToolStarted():
                self._started[event.call_id] = event
                words = f"  starts {_cut(event.summary)}"
            case ToolEnded():
                words = self._ended(event)
            case Notice(text=text):
                words = f"notice: {_cut(text)}"
            case RunEnded(text=text):
                words = f"answer: {text}"
        return words

    def _ended(self, ended: ToolEnded) -> str:
        """What ran, for how long, and the outcome: of a command its last words, otherwise the size of the result."""
        words = "".join(part.text for part in ended.message.parts if isinstance(part, ToolResult))
        lines = [line for line in words.splitlines() if line.strip() and not line.startswith("[")]
        started = self._started.get(ended.call_id)
        what = _cut(started.summary) if started else ended.tool
        outcome = f"{len(lines)} lines"
        if lines and (ended.is_error or (started and started.effect is Effect.EXEC)):
            outcome = _cut(lines[-1])
        return f"  {'FAILED' if ended.is_error else 'done'} {what}, {ended.seconds:.2f} s: {outcome}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
