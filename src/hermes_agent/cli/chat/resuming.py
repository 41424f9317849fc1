"""Shows the end of a resumed conversation, and restores what is still open in it."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.cli.chat.chat_session import Status
from hermes_agent.cli.chat.transcript import Transcript
from hermes_agent.core.events import (
    Answered,
    Asked,
    Entry,
    MessageTaken,
    Outcome,
    Replied,
    RunEnded,
    RunStarted,
    ToolEnded,
    ToolStarted,
    Undone,
)
from hermes_agent.core.shown import additions, plural, words_of

EXCHANGES = 2
"""How many of the latest messages of the person are shown again, with what was answered."""
MOST_LINES = 30
"""Lines that are shown of one message."""


def in_view(entries: Sequence[Entry]) -> list[Entry]:
    """The log entries without undone ones."""
    kept: list[Entry] = []
    for entry in entries:
        if isinstance(entry.event, Undone):
            to = entry.event.to
            kept = [each for each in kept if each.number <= to]
        else:
            kept.append(entry)
    return kept


def retell(entries: Sequence[Entry], transcript: Transcript) -> None:
    """Show the last exchanges of a resumed conversation, shortened."""
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
                transcript.said(words_of(message), additions(message))
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
    """Restore the transcript's open part and the status from the log. Returns the number of the last event."""
    for entry in entries:
        status.see(entry.event)
        match entry.event:
            case RunStarted() | Asked() | ToolStarted():
                transcript.see(entry.event)
            case ToolEnded(call_id=call_id):
                transcript.calls.pop(call_id, None)
            case Replied():
                transcript.expect(entry.event)
            case Answered(question=question):
                transcript.questions.pop(question, None)
            case RunEnded(outcome=outcome, text=text):
                transcript.last_answer = text if outcome is Outcome.ANSWERED else transcript.last_answer
                transcript.running = False
                transcript.questions.clear()
                transcript.calls.clear()
            case _:
                pass
    return entries[-1].number if entries else 0
