"""What a channel is: the facts of one chat platform, and what its code promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from hermes_agent.app.chats.platforms import Platform
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Attachment, Button
from hermes_agent.gateway.inbound_events import Hear, Media
from hermes_agent.host.http import Http
from hermes_agent.host.nearest import nearest_key

LONG = 20_000
"""Characters of a message from which on nobody minds how many there may be."""


class ChannelError(HermesError):
    """A platform did not do what it was asked."""


class NotNow(ChannelError):
    """Certainly not done; worth another try, after `retry_after` seconds where the platform said so."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class OutcomeUnknown(ChannelError):
    """The answer was lost: it may have been done."""


class NeverHere(ChannelError):
    """Certainly not done, and no other try will do it: the chat is gone, the agent was removed, the content is
    refused."""


class MessageGone(ChannelError):
    """The message that was to be changed is not there any more, or may not be changed any more."""


class TokenRefused(ChannelError):
    """The platform does not know this agent: nothing works until a person sees to the token."""


class Unit(StrEnum):
    """What a platform counts in a message."""

    CHARACTERS = "characters"
    UTF16 = "utf16"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a platform can do.

    `longest_message` is counted in `unit`. `typing` is how many seconds a sign of typing lasts (0: there is none),
    `draft` how many seconds unfinished words stay that are shown without a message, in chats with one person (0:
    they cannot be). `buttons` is how many one message may have, `largest_file` the bytes of a file that goes out
    (0: none goes). `keyed`: for so many seconds sending again under the same key sends nothing twice. `read_back`:
    `find` can tell whether something was sent. `hears_edits`: people's edits are told. `fences`: code blocks may be
    marked as Markdown has it (by more than three backticks, by tildes, indented in lists); where not, they are
    given the plainest marks.
    """

    longest_message: int
    unit: Unit = Unit.CHARACTERS
    edit: bool = False
    delete: bool = False
    draft: float = 0.0
    threads: bool = False
    buttons: int = 0
    reactions: bool = False
    typing: float = 0.0
    largest_file: int = 0
    voice: bool = False
    mentions: bool = False
    keyed: float = 0.0
    read_back: bool = False
    hears_edits: bool = False
    fences: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast a platform lets one agent write, all in seconds between two: messages at all, to one person's chat, to
    one group, changes of one message, changes of words that are shown without a message."""

    every: float = 0.0
    chat: float = 0.0
    group: float = 0.0
    edit: float = 1.0
    draft: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One setting of a channel's own (`gateway.channels.NAME.options`): what it means, and what holds without it."""

    doc: str
    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One platform message: Markdown that fits into it, or a file with its caption. Buttons answer slot `slot`;
    `answers` is the `source_id` of the message that it replies to (empty: none)."""

    text: str
    file: Attachment | None = None
    buttons: tuple[Button, ...] = ()
    slot: int = 0
    answers: str = ""


class Channel:
    """One platform, reached with one token. A channel that says so of itself has what is done where its platform has
    nothing of the kind.

    - `listen` runs until it is cancelled and calls `hear` for what people do, in the order of the platform, one
      after the other within a chat; the platform is told that something arrived only after `hear` has returned, so that
      what was not taken in is told again; what a previous process left is told too, where the platform kept it;
    - `listen` raises `NotNow` where the connection broke (it is called again), `TokenRefused` where no call will do;
    - `fetch` gets the bytes of a file that came with a message, by its `reference`, also in a later process, or several
      files that stand for it; of more than `most` bytes no more than show that there are more. Raises `ChannelError`;
    - `send` makes one message and returns the platform's id of it, its receipt; under a `key` that was used before it
      makes no second one where the abilities say `keyed`;
    - `edit` gives the message of a receipt new content; the content that it has already is no error; buttons that are
      not in the new content are gone;
    - `send`, `edit`, `delete` raise `NotNow`, `OutcomeUnknown`, `NeverHere` or `TokenRefused`, `edit` and `delete` also
      `MessageGone`, and nothing else; `OutcomeUnknown` only where bytes were sent and no answer came;
    - `find` returns the receipt of what `send` sent under this key after `since` (seconds since 1970), whatever its
      words were then, or of the part's file by its name; None where it is certainly not there; it is asked only where
      the abilities say `read_back`;
    - `draft` shows unfinished words in the place of those that were shown under the same key, until they fade or a
      message is sent there; no message comes of it, so a lost answer is no more than a failure. It is asked only where
      the abilities say `draft`, and raises `NotNow`, `TokenRefused`, or `NeverHere` where that chat has none;
    - `typing` and `react` are signs only: they raise nothing but `ChannelError`, which nobody minds;
    - Markdown that the platform has no way to show becomes words that read well; nothing is lost, and what cannot be
      formatted is sent plain;
    - no text of a person becomes a mention of somebody else, or of everybody;
    - `check` raises `ChannelError` where the token is not accepted, or something else is wrong;
    - `close` gives everything back; nothing is called afterwards.
    """

    async def listen(self, hear: Hear) -> None:
        raise NotImplementedError

    async def send(self, to: Conversation, part: Part, key: str) -> str:
        raise NotImplementedError

    async def check(self) -> None:
        raise NotImplementedError

    async def fetch(self, media: Media, most: int) -> bytes | Sequence[tuple[Media, bytes]]:  # noqa: ARG002  what others need
        """Never asked: no files come."""
        raise NeverHere("there are no files here.")

    async def edit(self, to: Conversation, receipt: str, part: Part) -> None:
        """Never asked: what was sent stays."""

    async def delete(self, to: Conversation, receipt: str) -> None:
        """Never asked: what was sent stays."""

    async def find(self, to: Conversation, part: Part, key: str, since: float) -> str | None:  # noqa: ARG002  what others need
        """Never asked: what was written cannot be read back."""
        return None

    async def draft(self, to: Conversation, text: str, key: str) -> None:
        """Never asked: there are no words without a message."""

    async def typing(self, to: Conversation) -> None:
        """Nobody sees the agent write."""

    async def react(self, to: Conversation, source_id: str, sign: str) -> None:
        """There are no signs."""

    async def close(self) -> None:
        """What it uses is the process's."""


class Kept(Protocol):
    """Short texts in the store by place and name, for whichever process listens next. An empty one takes it away."""

    async def of(self, place: str) -> Mapping[str, str]: ...

    async def set(self, place: str, name: str, value: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a channel is made of: its options with their defaults filled in, secrets by name, the process's HTTP
    clients, the time, a folder of its own, and what it keeps in the store. `note` shows beside the channel's state what
    its owner may want to know of it."""

    options: Mapping[str, str]
    secret: Callable[[str], str]
    http: Http
    clock: Clock
    folder: Path
    kept: Kept
    note: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A channel's line in the table: its facts, and `make`, which raises `ConfigError` where something is missing.

    `secrets` are the names under which its token and the like are kept, the first being the one that only one process
    may listen with, of the account that the options in `account` name where the secret alone names none; `setup` is
    told to the person step by step. `hash_ids`: a user's id is a phone number or address,
    which the model and the logs see hashed.
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
    hash_ids: bool = False

    @property
    def platform(self) -> Platform:
        """What the prompt says of it."""
        can = self.abilities
        facts = (
            f"{can.longest_message:,} characters each, more is cut" if can.longest_message < LONG else "",
            "Markdown shows, tables as aligned text",
            "questions have buttons" if can.buttons else "answers to questions are written",
            f"files of up to {can.largest_file // 1_000_000:,} MB go out" if can.largest_file else "no files go out",
        )
        return Platform(title=self.title, facts=tuple(filter(None, facts)))


def no_option(kind: Kind, name: str) -> str:
    """That a channel has no option of that name, and which one was meant."""
    near = nearest_key(name, tuple(kind.options))
    known = f"There are: {', '.join(kind.options)}." if kind.options else "It has none of its own."
    return f"`{kind.name}` has no option `{name}`. " + (f"Did you mean `{near}`?" if near else known)
