"""What a platform tells: words, pressed buttons, edits and farewells, as a channel hands them on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Who said it: the platform's own id of the person (never a name that people choose), and the name that is shown.

    `groups` are the ids of what they belong to where the platform has roles; `bot` is true for programs.
    """

    user: str
    name: str = ""
    groups: tuple[str, ...] = ()
    bot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """A file that came with a message. `reference` is what `Channel.fetch` finds its bytes by, in this process or in
    the next one; nothing is fetched for people who may not speak. `voice` marks spoken words."""

    name: str
    media_type: str
    size: int
    reference: str
    voice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """What a message replies to: the words that somebody wrote, or those of them that were chosen, and their files."""

    text: str = ""
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message.

    `source_id` is the platform's identity of it, the same however often it is told (with the chat in it where the
    platform counts per chat). `where` names platform, kind, chat and thread, and the participant of a chat with one
    person in which that may be another one some day. `addressed` is true where it names this
    agent or replies to it; `text` has no such mention left. `at` is seconds since 1970 by the platform. `edited` is
    the platform's stamp of a new text of a message that was told before, under the same `source_id`: another one for
    each change, the same however often it is told (empty: it was not changed). `forwarded` marks one that somebody
    else may have written: it orders and answers nothing. `quoted` is what it replies to, where the agent did not write
    that or the sender chose words of it. `title` is the name that people gave the place, where it has one. `named`
    are the ids of people in it besides the sender: whom it mentions, goes to, quotes or was forwarded from.
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
    """A button under slot `slot` was pressed: the one of number `choice`, counted from 0. `source_id` is the platform's
    identity of the press."""

    source_id: str
    where: Conversation
    sender: Sender
    slot: int
    choice: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """The message of that `source_id` was deleted.

    `by` is the id of who did it, where the platform says so; empty where it does not and lets nobody do it but the
    sender and those who moderate the place. `moderates`: it lets whoever this is delete what others wrote.
    """

    source_id: str
    where: Conversation
    by: str = ""
    moderates: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """This agent can no longer write there: it was removed, blocked, or the chat is gone."""

    where: Conversation
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Invited:
    """Somebody asks this agent into a chat. It goes there where `hear` gives a word, and stays away where it gives
    none. `STRANGER` is the word for somebody it does not know, who may ask for a code in a chat of two: it stays only
    while nobody else is in there."""

    where: Conversation
    sender: Sender


STRANGER = "stranger"
Heard = Said | Pressed | Withdrawn | Removed | Invited
Hear = Callable[[Heard], Awaitable[str]]
"""Takes in what was heard; durable when it returns. What it gives is a short word for whoever pressed a button or
invited (empty: none)."""
