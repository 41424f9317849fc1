"""Chats: identity of senders and conversations, the message that comes in, and what goes out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Pinned
from hermes_agent.core.messages import File, Image, Text
from hermes_agent.core.section import short_hash

SAID = ":said"
"""Ends the id of what a command says to the agent; before it stands that of the command."""
CHANGED = "(I changed an earlier message. It now says:) "
"""Stands before the new text of a message that was told before."""
TAKEN_BACK = "Deleted where it was written."
"""Why a message is refused that its sender took back."""
UNREAD = "before it was read, and not answered"
"""Says of a message that was taken back that no run took it."""
PEOPLE = "/people/"
"""Where below a surface's workspace those of people who are not the owner are, and of shared conversations."""
OWN_NAME = re.compile(r"[0-9a-f]{16}")
INSTRUCTIONS = "instructions"
"""The pin that holds what belongs to one request of a program: the next one takes it off."""
SYSTEM_PIN = "system-"
"""Begins the pins that hold what a program wants a session to go by."""
PRIVATE = frozenset({"", "dm", "folder", "chat", "name"})
"""Kinds of chats that one person alone reads; `chat` and `name` are those of programs, by their key."""


class Standing(StrEnum):
    """Role of a principal: owner, member or guest. The label of what they say has the same name (`messages.Origin`)."""

    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"


class Standings:
    """Looks up the role of a principal by key (`platform:user`), from memory and without blocking."""

    def __init__(self, of: Callable[[str], Standing]) -> None:
        self.of = of

    def is_owner(self, principal: str) -> bool:
        """Whether that principal owns the home."""
        return self.of(principal) is Standing.OWNER

    def principal(self, key: str) -> Principal:
        """The principal of that key, in their role."""
        platform, _, user = key.partition(":")
        return Principal(platform=platform, user=user, standing=self.of(key))


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The sender of a message: `platform` and the platform's user id, e.g. `cli:root`. `alias` replaces the id in
    prompts where ids are hidden from the model."""

    platform: str
    user: str
    standing: Standing = Standing.GUEST
    name: str = ""
    alias: str = ""

    @property
    def key(self) -> str:
        """`platform:user`, the key of everything that belongs to this principal."""
        return f"{self.platform}:{self.user}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Address of a conversation. `participant` is set where a group has one conversation per user; `topic` where a
    chat has several."""

    platform: str
    chat_kind: str = "dm"
    chat: str = ""
    thread: str = ""
    participant: str = ""
    topic: str = ""

    @property
    def key(self) -> str:
        """`platform:kind:chat[:thread][:participant]`, percent-escaped where a part holds a colon or a hash."""
        parts = [self.platform, self.chat_kind, self.chat, self.thread, self.participant]
        while parts and not parts[-1]:
            parts.pop()
        key = ":".join(part.replace("%", "%25").replace(":", "%3A").replace("#", "%23") for part in parts)
        return f"{key}#{self.topic}" if self.topic else key

    @property
    def is_private(self) -> bool:
        """Whether nobody else can read the conversation."""
        return self.chat_kind in PRIVATE

    @property
    def is_shared(self) -> bool:
        """Whether several people share one session of it."""
        return not self.is_private and not self.participant

    @property
    def place(self) -> Conversation:
        """Where a message appears: the same chat and thread, without participant and topic."""
        return replace(self, participant="", topic="")

    @classmethod
    def parse(cls, key: str) -> Conversation:
        """The conversation that has this key."""
        where, _, topic = key.partition("#")
        parts = [part.replace("%23", "#").replace("%3A", ":").replace("%25", "%") for part in where.split(":")]
        platform, kind, chat, thread, participant = [*parts, "", "", "", "", ""][:5]
        return cls(platform=platform, chat_kind=kind, chat=chat, thread=thread, participant=participant, topic=topic)


def workspace_of(base: str, who: Principal, where: Conversation) -> str:
    """The working folder of a new session: the owner's `base`, or below it one of their own for everybody else and for
    those who share a conversation. A conversation of a folder has that folder."""
    if where.chat_kind == "folder" or (who.standing is Standing.OWNER and not where.is_shared):
        return base
    whose = where.place.key if where.is_shared else who.key
    return f"{base.partition(PEOPLE)[0]}{PEOPLE}{short_hash(whose)}"


def own_name(workspace: str) -> str:
    """The name of such a folder of their own, which their files in the cache have too; empty for the owner's."""
    name = workspace.rpartition(PEOPLE)[2]
    return name if name != workspace and OWN_NAME.fullmatch(name) else ""


class Busy(StrEnum):
    """Policy for a message that arrives during a run. `steer`: the model reads it at the next turn; `queue`: it waits
    until the run ends; `interrupt`: it stops the run and is read next; `alone`: it waits for its turn and gets a run
    and a reply of its own."""

    STEER = "steer"
    QUEUE = "queue"
    INTERRUPT = "interrupt"
    ALONE = "alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """One message from outside, on its way to a session.

    `source` and `source_id` together are the platform's identity of the message: the same identity is accepted
    once. `parts` carry the origin label that access control gave the sender. `resumes` marks mail that asks a
    stopped run to continue; `answers` is the id of the question that the message answers. `replaces` is the
    `identity` of the message whose edited text this is. `withdraws` is that of a deleted message: then `parts` is
    empty and the principal is who deleted it (no user: the platform does not say). `notice` is shown to the
    person when the message is read. `title` is the chat's name on one line (empty: unknown). `pins` are a
    program's instructions from this message on (those of `INSTRUCTIONS` for its run alone), `model` answers it
    (empty: the session's), `digest` tells a repeated request from another one of that identity.
    """

    source: str
    source_id: str
    principal: Principal
    conversation: Conversation
    parts: tuple[Text | Image | File, ...]
    received: float
    busy: Busy = Busy.STEER
    resumes: bool = False
    answers: str = ""
    replaces: str = ""
    withdraws: str = ""
    notice: str = ""
    title: str = ""
    pins: tuple[Pinned, ...] = ()
    model: str = ""
    digest: str = ""

    @property
    def identity(self) -> str:
        """The platform's id of the original message, also for an edit of it."""
        return self.replaces or self.source_id.removesuffix(SAID)

    @property
    def text(self) -> str:
        """The words."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


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
