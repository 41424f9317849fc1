"""What a client says was said before: told apart from what the log has, or put into a new one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from hermes_agent.api.requests import Said, origin_of, parts_of, text_of
from hermes_agent.api.run_view import BETWEEN
from hermes_agent.core.events import Durable, Entry, MessageTaken, Pinned, Replied, RunEnded, Undone
from hermes_agent.core.inbound import INSTRUCTIONS, SYSTEM_PIN, Principal
from hermes_agent.core.messages import Message, Role, Text
from hermes_agent.core.model import StopReason, Usage


def mark_of(instructions: str, first: str) -> str:
    """What conversations are looked up by that begin like this."""
    return hashlib.sha256(f"{len(instructions)}\n{instructions}{first}".encode("utf-8", "surrogatepass")).hexdigest()[
        :32
    ]


def pins_of(instructions: str, system: str) -> tuple[Pinned, ...]:
    """What a request wants held, word for word, whatever is compacted: its own instructions, and what its session is to
    go by from then on."""
    named = hashlib.sha256(system.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    pins = (Pinned(pin=INSTRUCTIONS, text=instructions), Pinned(pin=f"{SYSTEM_PIN}{named}", text=system))
    return tuple(pin for pin in pins if pin.text)


def events_of(history: Iterable[Said], speaker: Principal) -> list[Durable]:
    """What a client says was said, for the beginning of a log."""
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
    """Whether a log holds just what a client says was said: the same words and files, in the same order, and nothing
    more.

    An answer may have reached the client as the reply alone, or streamed, with the words of every turn.
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
    """What is no words in a message."""
    return [part for part in parts if not isinstance(part, Text)]


def _spoken(entries: Iterable[Entry]) -> list[tuple[frozenset[str], list[object] | None]] | None:
    """Each thing that was said in a log: the forms in which it was shown, and the files in it (None: it is a reply).
    None where something was taken back."""
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
