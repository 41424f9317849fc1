"""Inbound channel events: messages, button presses, edits, deletions, removals and invitations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes_agent.core.chat import Conversation
from hermes_agent.core.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The author of an event: the platform's user id (never a name that people choose) and the display name.

    `groups`: ids of the user's roles; `bot`: true for programs.
    """

    user: str
    name: str = ""
    groups: tuple[str, ...] = ()
    bot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """A received file, not downloaded yet. `reference` is passed to `Channel.fetch`, in this process or a later one;
    files of refused senders are never fetched. `voice` marks voice messages."""

    name: str
    media_type: str
    size: int
    reference: str
    voice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """The message that an inbound message replies to: its text, or the selected part of it, and its files."""

    text: str = ""
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message that a person wrote in a chat, new or edited.

    - `source_id`: the platform's message id, equal on redelivery (includes the chat if ids are per chat);
    - `where`: platform, kind, chat and thread; also the participant of a private chat that may get another one;
    - `addressed`: it mentions the agent or replies to it; `text` has no such mention left;
    - `at`: the platform's time in seconds since 1970;
    - `edited`: the platform's stamp of an edit of the same `source_id`, different for each edit (empty: not edited);
    - `forwarded`: someone else may have written it, so it commands and answers nothing;
    - `quoted`: what it replies to, if the agent did not write that or the sender selected a part;
    - `title`: the chat's name; `named`: ids of other people in it (mentioned, addressed, quoted, forwarded from).
    """

    source_id: str
    where: Conversation
    sender: Sender
    text: str
    at: float
    media: tuple[Media, ...] = ()
    addressed: bool = False
    edited: str = ""
    forwarded: bool = False
    quoted: Quoted | None = None
    title: str = ""
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressed:
    """A button press in a chat: choice `choice` (from 0) of slot `slot`; `source_id` is the platform's id of it."""

    source_id: str
    where: Conversation
    sender: Sender
    slot: int
    choice: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """A message was deleted from a chat: the one with this `source_id`.

    `by`: the deleting user's id if known; empty if the platform does not say and allows only the sender and moderators.
    `moderates`: that user may delete other people's messages.
    """

    source_id: str
    where: Conversation
    by: str = ""
    moderates: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """The agent can no longer write in a chat: it was removed or blocked, or the chat is gone."""

    where: Conversation
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Invited:
    """An invitation into a chat. The agent joins if `hear` returns a word and declines if it returns none.
    `STRANGER` is returned for an unknown user who may request a pairing code in a private chat: it stays only
    while nobody else is there."""

    where: Conversation
    sender: Sender


STRANGER = "stranger"
ANYBODY = "anybody"
"""The user id of whoever writes where the platform does not tell people apart."""
Heard = Said | Pressed | Withdrawn | Removed | Invited
Hear = Callable[[Heard], Awaitable[str]]
"""Takes in what was heard; durable when it returns. What it gives is a short word for whoever pressed a button or
invited (empty: none)."""
