"""Outgoing messages: content of a slot, its destination, and its delivery state."""

from __future__ import annotations

from enum import StrEnum

from hermes_agent.core.chat import Conversation
from hermes_agent.core.dataclass import dataclass

TOLD = "told:"
"""What the keys of letters begin with that tell of others: where one fails, nobody is told of that."""
LOST = "I could not deliver a message here: {why}. Ask me again if you need it."


class SlotState(StrEnum):
    """Delivery state of a slot: not started; started, outcome open; shown, with receipts; refused for good; or
    unsure, because the sender died or lost the platform's answer."""

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A choice that a person can press; pressing it answers with `value`."""

    label: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file to send, by its absolute path on this machine."""

    path: str
    name: str
    media_type: str = "application/octet-stream"
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Content of a slot: Markdown, then buttons that answer `question`, then files."""

    text: str
    buttons: tuple[Button, ...] = ()
    question: str = ""
    files: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A slot to put into the outbox. `key` makes it idempotent: the same key again replaces the slot's content, in the
    message that already shows it. `inbox` is the row of the message that it answers (0: none)."""

    key: str
    to: Conversation
    content: Content
    session: str = ""
    inbox: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One platform message of a slot: its platform id, and the version of the content that it shows."""

    receipt: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """An outbox slot in delivery.

    `pieces` are the messages that are certainly shown, in order; in state `unsure` the next one may be shown too.
    `answers` is the platform's id of the message that it answers (empty: none), `attempts` the number of failures,
    `repeats` how often a piece was sent again that may have been shown already. `epoch` fences its current holder.
    """

    id: int
    key: str
    to: Conversation
    content: Content
    session: str
    version: int
    state: SlotState
    pieces: tuple[Piece, ...]
    epoch: int
    attempts: int
    repeats: int
    answers: str
    error: str
    at: float


def lost(slot: int, to: Conversation, why: str) -> Letter:
    """The letter that replaces an undeliverable slot and says why."""
    return Letter(key=f"{TOLD}lost {slot}", to=to, content=Content(text=LOST.format(why=why)))
