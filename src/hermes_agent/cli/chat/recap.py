"""A session that is taken up again: what is shown of it, and what is open in it."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.cli.chat.status import Status
from hermes_agent.cli.chat.transcript import Transcript
from hermes_agent.core.events import (
    Answered,
    Asked,
    Entry,
    MessageTaken,
    Replied,
    RunEnded,
    RunStarted,
    ToolEnded,
    Undone,
)
from hermes_agent.core.plural import plural

EXCHANGES = 2
"""How many of the latest messages of the person are shown again, with what was answered."""
MOST_LINES = 30
"""Lines that are shown of one message."""


def in_view(entries: Sequence[Entry]) -> list[Entry]:
    """The entries without those that were taken back."""
    kept: list[Entry] = []
    for entry in entries:
        if isinstance(entry.event, Undone):
            to = entry.event.to
            kept = [each for each in kept if each.number <= to]
        else:
            kept.append(entry)
    return kept


def retell(entries: Sequence[Entry], transcript: Transcript) -> None:
    """Show the end of the conversation in short."""
    kept = in_view(entries)
    said = [place for place, entry in enumerate(kept) if isinstance(entry.event, MessageTaken) and entry.event.inbox]
    if not said:
        return
    begin = said[-EXCHANGES:][0]
    if begin > said[0]:
        transcript.remark(f"… {len(said) - EXCHANGES} earlier messages")
    calls = 0
    for entry in kept[begin:]:
        match entry.event:
            case MessageTaken(message=message, inbox=inbox) if inbox:
                calls = _tell_calls(calls, transcript)
                transcript.said(message.text)
            case ToolEnded():
                calls += 1
            case Replied(message=message) if message.text.strip():
                calls = _tell_calls(calls, transcript)
                transcript.reply(_shortened(message.text))
            case _:
                pass
    _tell_calls(calls, transcript)


def _tell_calls(calls: int, transcript: Transcript) -> int:
    if calls:
        transcript.remark(f"· {calls} tool call{'s' if calls > 1 else ''}")
    return 0


def _shortened(text: str) -> str:
    lines = text.split("\n")
    if len(lines) <= MOST_LINES:
        return text
    return f"… {plural(len(lines) - MOST_LINES, 'line')} before\n\n" + "\n".join(lines[-MOST_LINES:])


def replay(entries: Sequence[Entry], transcript: Transcript, status: Status) -> int:
    """Bring the transcript's open part and the status to where the log stands; the number of the last event."""
    for entry in entries:
        status.see(entry.event)
        match entry.event:
            case RunStarted() | Asked():
                transcript.see(entry.event)
            case Answered(question=question):
                transcript.questions.pop(question, None)
            case RunEnded():
                transcript.running = False
                transcript.questions.clear()
            case _:
                pass
    return entries[-1].number if entries else 0
