"""Events as lines for a person, with times and counts."""

from __future__ import annotations

from dataclasses import dataclass

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

LONGEST = 110


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


def told(event: Event) -> str:
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
        case ToolStarted(summary=summary):
            words = f"  starts {_cut(summary)}"
        case ToolEnded():
            state = "failed" if event.is_error else "done"
            words = f"  {event.tool} {state}, {event.seconds:.2f} s: {_cut(_last_line(event))}"
        case Notice(text=text):
            words = f"notice: {_cut(text)}"
        case RunEnded(text=text):
            words = f"answer: {text}"
    return words


def _last_line(ended: ToolEnded) -> str:
    """The last line of the result that says something: where a test run or a command puts its outcome."""
    words = "".join(part.text for part in ended.message.parts if isinstance(part, ToolResult))
    lines = [line.strip() for line in words.splitlines()]
    return next((line for line in reversed(lines) if line and not line.startswith("[")), "")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
