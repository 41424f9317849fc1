"""Channel interface: contract of a chat platform adapter, its events, capabilities, pace, errors and table entry."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from hermes_agent.app.chats.platforms import Platform
from hermes_agent.core.chat import Attachment, Button, Conversation
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.http import Http
from hermes_agent.host.nearest import nearest_key


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


LONG = 20_000
"""Characters of a message from which on nobody minds how many there may be."""


class ChannelError(HermesError):
    """Base class of the errors of a call to a chat platform."""


class NotNow(ChannelError):
    """Temporary failure of a platform call: it was certainly not done; retry, after `retry_after` seconds if given."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class OutcomeUnknown(ChannelError):
    """A platform call got no answer: it may have been done."""


class NeverHere(ChannelError):
    """Permanent failure of a platform call for this chat or content: the chat is gone, the agent was removed, or the
    content is rejected."""


class MessageGone(ChannelError):
    """The message to change no longer exists or can no longer be changed."""


class TokenRefused(ChannelError):
    """The platform rejects the channel's token: no call works until a person fixes it."""


class Unit(StrEnum):
    """Unit in which a platform measures message length."""

    CHARACTERS = "characters"
    UTF16 = "utf16"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """Capabilities of a platform.

    - `longest_message`: in `unit`;
    - `typing`: seconds a typing indicator lasts (0: none);
    - `draft`: seconds a streamed draft without a message stays visible, in private chats (0: not supported);
    - `buttons`: most per message; `largest_file`: most bytes of an outgoing file (0: no files);
    - `keyed`: seconds during which a repeated send with the same key is deduplicated;
    - `read_back`: `find` can tell whether something was sent;
    - `hears_edits`: people's edits are reported;
    - `fences`: any Markdown code fence works (more than three backticks, tildes, indented in lists); otherwise only
      the plainest is used.
    """

    longest_message: int
    unit: Unit = Unit.CHARACTERS
    edit: bool = False
    delete: bool = False
    draft: float = 0.0
    threads: bool = False
    buttons: int = 0
    typing: float = 0.0
    largest_file: int = 0
    keyed: float = 0.0
    read_back: bool = False
    hears_edits: bool = False
    fences: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Rate limits of a platform, each as seconds between two actions: any message, messages to one private chat, to
    one group, edits of a message, updates of a draft."""

    every: float = 0.0
    chat: float = 0.0
    group: float = 0.0
    edit: float = 1.0
    draft: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A channel-specific setting (`gateway.channels.NAME.options`): its meaning and default. `asked`: the channel
    needs it, so `hermes gateway setup` asks for it."""

    doc: str
    default: str = ""
    asked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One message to send to a platform: Markdown that fits its limit, or a file with a caption. Buttons belong to
    outbox slot `slot`; `answers` is the `source_id` of the message it replies to (empty: none)."""

    text: str
    file: Attachment | None = None
    buttons: tuple[Button, ...] = ()
    slot: int = 0
    answers: str = ""


class Channel:
    """Adapter of one chat platform with one token: receives events, sends and edits messages. Defaults are for
    platforms without the feature.

    - `listen` runs until cancelled and calls `hear` for each event, in platform order within a chat. It acknowledges
      an event to the platform only after `hear` has returned, so an unprocessed event is delivered again; events
      that a previous process left are delivered too if the platform kept them;
    - `listen` raises `NotNow` on a lost connection (it is called again) and `TokenRefused` if no call can succeed;
    - `fetch` downloads a received file by its `reference`, also in a later process, or several files it stands for;
      if it exceeds `most` bytes, only enough to show that. Raises `ChannelError`;
    - `send` sends one message and returns its platform id, the receipt; if the abilities say `keyed`, a repeated
      `key` sends no second one;
    - `edit` replaces the content of a message; equal content is no error; buttons missing from the new content
      disappear;
    - `send`, `edit`, `delete` raise only `NotNow`, `OutcomeUnknown`, `NeverHere` or `TokenRefused`, `edit` and
      `delete` also `MessageGone`; `OutcomeUnknown` only if bytes were sent and no answer came;
    - `find` returns the receipt of what was sent under this key after `since` (seconds since 1970), whatever its
      text was then, or of the part's file by name; None if it certainly does not exist. Called only if the abilities
      say `read_back`;
    - `draft` shows an unfinished text in place of the previous one under the same key, until it expires or a message
      is sent. It creates no message, so a lost answer is a plain failure. Called only if the abilities say `draft`;
      raises `NotNow`, `TokenRefused`, or `NeverHere` if that chat supports none;
    - `typing` is best effort: it raises only `ChannelError`, which is ignored;
    - Markdown that the platform cannot show becomes readable text without loss; what cannot be formatted is sent
      plain;
    - text never mentions (notifies) a third person or everybody;
    - `check` returns the name by which people find the agent there (empty: unknown), and raises `ChannelError` if the
      token or configuration is not accepted;
    - `close` releases all resources; nothing is called afterwards.
    """

    async def listen(self, hear: Hear) -> None:
        raise NotImplementedError

    async def send(self, to: Conversation, part: Part, key: str) -> str:
        raise NotImplementedError

    async def check(self) -> str:
        raise NotImplementedError

    async def fetch(self, media: Media, most: int) -> bytes | Sequence[tuple[Media, bytes]]:  # noqa: ARG002  what others need
        """Not called: the platform sends no files."""
        raise NeverHere("there are no files here.")

    async def edit(self, to: Conversation, receipt: str, part: Part) -> None:
        """Not called: messages cannot be edited."""

    async def delete(self, to: Conversation, receipt: str) -> None:
        """Not called: messages cannot be deleted."""

    async def find(self, to: Conversation, part: Part, key: str, since: float) -> str | None:  # noqa: ARG002  what others need
        """Not called: messages cannot be read back."""
        return None

    async def draft(self, to: Conversation, text: str, key: str) -> None:
        """Not called: drafts are not supported."""

    async def typing(self, to: Conversation) -> None:
        """No-op: no typing indicator."""

    async def close(self) -> None:
        """No-op: nothing of its own to release."""


class Kept(Protocol):
    """Persistent key-value store for a channel's state, by place and name. An empty text deletes a value."""

    async def of(self, place: str) -> Mapping[str, str]: ...

    async def set(self, place: str, name: str, value: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Dependencies of a channel: options with defaults, secrets, HTTP clients, clock, its own folder, and persistent
    state. `note` shows a remark to the owner beside the channel's state."""

    options: Mapping[str, str]
    secret: Callable[[str], str]
    http: Http
    clock: Clock
    folder: Path
    kept: Kept
    note: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A channel's entry in the table: its facts and factory. `make` raises `ConfigError` if something is missing.

    - `secrets`: names of its secrets; only one process may listen with the first one. `account` names options that
      identify the account if the secret alone does not;
    - `setup`: instructions for the person, step by step;
    - `person`: what the id of a user looks like, and that in words (empty: anything);
    - `hash_ids`: user ids are phone numbers or addresses, so the model and the logs see hashes.
    """

    name: str
    title: str
    abilities: Abilities
    pace: Pace
    secrets: tuple[str, ...]
    setup: tuple[str, ...]
    make: Callable[[Needs], Channel]
    options: Mapping[str, Option] = field(default_factory=dict)
    account: tuple[str, ...] = ()
    person: tuple[str, str] = ("", "")
    hash_ids: bool = False

    def wrong_people(self, people: Iterable[str]) -> str:
        """A sentence on those who are no ids of its users; empty where all are."""
        form, words = self.person
        wrong = [each for each in people if form and each != "*" and not re.fullmatch(form, each)]
        return f"`{wrong[0]}` is no id of {self.title}: {words}." if wrong else ""

    def with_defaults(self, given: Mapping[str, str]) -> dict[str, str]:
        """Its options, as given or else by default."""
        return {name: given.get(name, option.default) for name, option in self.options.items()}

    @property
    def platform(self) -> Platform:
        """The prompt facts of this platform."""
        can = self.abilities
        facts = (
            f"{can.longest_message:,} characters each, more is cut" if can.longest_message < LONG else "",
            "Markdown shows, tables as aligned text",
            "questions have buttons" if can.buttons else "answers to questions are written",
            f"files of up to {can.largest_file // 1_000_000:,} MB go out" if can.largest_file else "no files go out",
        )
        return Platform(title=self.title, facts=tuple(filter(None, facts)))


def no_option(kind: Kind, name: str) -> str:
    """Error message for an unknown option, with a suggestion."""
    near = nearest_key(name, tuple(kind.options))
    known = f"There are: {', '.join(kind.options)}." if kind.options else "It has none of its own."
    return f"`{kind.name}` has no option `{name}`. " + (f"Did you mean `{near}`?" if near else known)
