"""Client-sent conversation history: compares it with a session's log or turns it into log events; and request pins."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from hermes_agent.api.requests import Said, origin_of, parts_of, text_of
from hermes_agent.core.chat import INSTRUCTIONS, SYSTEM_PIN, Principal
from hermes_agent.core.events import Durable, Entry, MessageTaken, Pinned, Replied, RunEnded, Undone
from hermes_agent.core.messages import Message, Role, StopReason, Text, Usage
from hermes_agent.core.streamed import BETWEEN


def mark_of(instructions: str, first: str) -> str:
    """Lookup key for sessions that start with these instructions and this first message."""
    return hashlib.sha256(f"{len(instructions)}\n{instructions}{first}".encode("utf-8", "surrogatepass")).hexdigest()[
        :32
    ]


def pins_of(instructions: str, system: str, speaker: Principal) -> tuple[Pinned, ...]:
    """Pins for a request's instructions (this run) and system text (from then on), which compaction never changes."""
    named = hashlib.sha256(system.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    texts = {INSTRUCTIONS: instructions, f"{SYSTEM_PIN}{named}": system}
    return tuple(Pinned(pin=pin, text=text, origin=origin_of(speaker)) for pin, text in texts.items() if text)


def events_of(history: Iterable[Said], speaker: Principal) -> list[Durable]:
    """Log events for a client-sent history."""
    events: list[Durable] = []
    for said in history:
        if said.role == "assistant":
            events.append(_reply(text_of(said.content)))
        else:
            parts = parts_of(said.content, speaker) or (Text(text="", origin=origin_of(speaker)),)
            events.append(MessageTaken(message=Message(role=Role.USER, parts=parts), principal=speaker.key))
    return events


def _reply(text: str) -> Replied:
    return Replied(
        turn=0,
        call_id="",
        message=Message(role=Role.ASSISTANT, parts=(Text(text=text),)),
        stop=StopReason.END,
        usage=Usage(known=False),
        provider="",
        model="",
        cost=None,
        seconds=0.0,
    )


def tells(entries: Iterable[Entry], history: Sequence[Said], speaker: Principal) -> bool:
    """Whether a log holds exactly the client's history: the same texts and files in the same order.

    A reply may have reached the client alone or, when streamed, with the text of every turn; both match.
    """
    log = _spoken(entries)
    if log is None or len(log) != len(history):
        return False
    return all(
        text_of(said.content).strip() in words
        and (files is None if said.role == "assistant" else files == _files(parts_of(said.content, speaker)))
        for said, (words, files) in zip(history, log, strict=True)
    )


def _files(parts: Sequence[object]) -> list[object]:
    """The message parts that are not text."""
    return [part for part in parts if not isinstance(part, Text)]


def _spoken(entries: Iterable[Entry]) -> list[tuple[frozenset[str], list[object] | None]] | None:
    """Each message of a log: its possible texts, and its files (None for a reply). None if something was undone."""
    log: list[tuple[frozenset[str], list[object] | None]] = []
    turns: list[str] = []
    for entry in entries:
        match entry.event:
            case Undone():
                return None
            case MessageTaken(message=message, principal=principal) if principal:
                log.append((frozenset({message.text.strip()}), _files(message.parts)))
            case Replied(message=message) if not entry.run:
                log.append((frozenset({message.text.strip()}), None))
            case Replied(message=message) if message.text:
                turns.append(message.text)
            case RunEnded(text=text):
                log.append((frozenset({text.strip(), BETWEEN.join(turns).strip()}), None))
                turns = []
            case _:
                pass
    return log
