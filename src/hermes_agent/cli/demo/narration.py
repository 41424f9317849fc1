"""Events as lines for a person, with times and counts."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.core.effects import Effect
from hermes_agent.core.events import (
    Entry,
    Event,
    MessageTaken,
    Notice,
    PrefixFrozen,
    Replied,
    RunEnded,
    RunStarted,
    ToolEnded,
    ToolStarted,
)
from hermes_agent.core.messages import ToolCall, ToolResult

LONGEST = 90
ANSWER_INDENT = "\n" + " " * 19  # below the words that follow "answer: " and the seconds


def counted(entries: Sequence[Entry], seconds: float) -> str:
    """What one task took, counted in its log."""
    replies = [entry.event.usage for entry in entries if isinstance(entry.event, Replied)]
    calls = sum(isinstance(entry.event, ToolEnded) for entry in entries)
    tokens = sum(usage.input + usage.output for usage in replies)
    cached = sum(usage.cached for usage in replies)
    return (
        f"{len(replies)} model calls, {calls} tool calls, {tokens:,} tokens ({cached:,} of them cached), "
        f"{len(entries)} events committed, {seconds:.1f} s"
    )


class Narrator:
    """Tells events one by one. It remembers which call is which, because several run side by side."""

    def __init__(self) -> None:
        self._commands: set[str] = set()
        self._calls: dict[str, str] = {}

    def narrate(self, event: Event) -> str:
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
                self._calls.update({call.id: _in_short(call) for call in message.tool_calls})
                words = f"model, {seconds:.2f} s, {usage.output} tokens: {_cut(message.text)}"
            case ToolStarted():
                if event.effect is Effect.EXEC:
                    self._commands.add(event.call_id)
                words = f"  starts {_cut(event.summary)}"
            case ToolEnded():
                words = self._ended(event)
            case Notice(text=text):
                words = f"notice: {_cut(text)}"
            case RunEnded(text=text):
                words = "answer: " + text.replace("\n", ANSWER_INDENT)
        return words

    def _ended(self, ended: ToolEnded) -> str:
        """What ran, for how long, and the outcome: of a command its last words, otherwise the size of the result."""
        words = "".join(part.text for part in ended.message.parts if isinstance(part, ToolResult))
        lines = [line for line in words.splitlines() if line.strip() and not line.startswith("[")]
        what = self._calls.get(ended.call_id, ended.tool)
        last_words = lines and (ended.is_error or ended.call_id in self._commands)
        outcome = _cut(lines[-1]) if last_words else f"{len(lines)} {'line' if len(lines) == 1 else 'lines'}"
        return f"  {'FAILED' if ended.is_error else 'done'} {what}, {ended.seconds:.2f} s: {outcome}"


def _in_short(call: ToolCall) -> str:
    """The tool and its first argument, which says best what the call is about."""
    first = next(iter(call.arguments.values()), "")
    return f"{call.name}: {_cut(str(first))}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
