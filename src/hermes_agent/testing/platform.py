"""The state of a platform's double: chats with their messages, people who write, and faults that strike on demand."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import field, replace
from enum import StrEnum
from typing import Protocol

from hermes_agent.core.dataclass import dataclass

TITLE = "All"
"""The name of every group."""


class Trouble(StrEnum):
    """What happens to a call of the agent.

    `busy`: refused with the platform's rate limit; `broken`: refused with a 5xx; `cut`: the connection breaks before
    anything was done; `deaf`: it is done and the answer is lost; `gone`: the chat or message is not there;
    `garbled`: an answer that is none.
    """

    BUSY = "busy"
    BROKEN = "broken"
    CUT = "cut"
    DEAF = "deaf"
    GONE = "gone"
    GARBLED = "garbled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A message of the agent as people see it now. `written` is the text as it came over the wire."""

    id: str
    chat: str
    text: str
    thread: str = ""
    buttons: tuple[str, ...] = ()
    file: str = ""
    answers: str = ""
    key: str = ""
    edits: int = 0
    written: str = ""


@dataclass(slots=True)
class Chats:
    """What the agent wrote on one platform, in order, and what is to go wrong.

    `retry_after` is what a busy platform answers. `drafts` are the unfinished words that each chat shows without a
    message, in the states that were seen; a message ends them. `calls` counts what was asked
    by name, including what was refused.
    """

    retry_after: int = 1
    troubles: deque[tuple[str, Trouble]] = field(default_factory=deque)
    messages: dict[str, Shown] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    reactions: list[tuple[str, str]] = field(default_factory=list)
    typing: list[str] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    drafts: dict[str, list[str]] = field(default_factory=dict)
    _last: int = 1000

    def next_id(self) -> str:
        """The id of the next message."""
        self._last += 1
        return str(self._last)

    def trouble(self, call: str) -> Trouble | None:
        """What happens to this call: what was ordered for it, each order once. Counts the call."""
        self.calls[call] += 1
        for position, (name, trouble) in enumerate(self.troubles):
            if name in (call, "*"):
                del self.troubles[position]
                return trouble
        return None

    def order(self, trouble: Trouble, call: str = "*", times: int = 1) -> None:
        """Let the next calls of that name (any) go wrong."""
        self.troubles.extend([(call, trouble)] * times)

    def show(self, message: Shown) -> Shown:
        """Show a new message; the same key again shows the one that is there."""
        if message.key and message.key in self.keys:
            return self.messages[self.keys[message.key]]
        self.messages[message.id] = message
        self.drafts.pop(message.chat, None)
        if message.key:
            self.keys[message.key] = message.id
        return message

    def change(self, id_: str, text: str, buttons: tuple[str, ...] = (), written: str = "") -> bool:
        """Give a message new content; False where it is not there."""
        if id_ not in self.messages:
            return False
        old = self.messages[id_]
        self.messages[id_] = replace(old, text=text, buttons=buttons, written=written, edits=old.edits + 1)
        return True

    def draft(self, chat: str, text: str) -> None:
        """Show unfinished words."""
        self.drafts.setdefault(chat, []).append(text)

    def of(self, chat: str) -> list[Shown]:
        """What is to be seen of the agent in a chat, oldest first."""
        return [message for message in self.messages.values() if message.chat == chat]


@dataclass(slots=True)
class Held:
    """What people say while `holding` is kept back, until `tell_late`."""

    holding: bool = False
    late: list[Callable[[], Awaitable[None] | None]] = field(default_factory=list)

    async def tells(self, tell: Callable[[], Awaitable[None] | None]) -> None:
        """Have the platform tell something, now or late."""
        if self.holding:
            self.late.append(tell)
        elif (telling := tell()) is not None:
            await telling

    async def tell_late(self) -> None:
        """Tell what was said while `holding`, after what was said since."""
        self.holding = False
        while self.late:
            await self.tells(self.late.pop(0))


class Double(Protocol):
    """A platform on loopback, for the contract of channels and for load.

    - `chats` is what the agent wrote, and where troubles are ordered;
    - `say` has a person write in a chat, in a group where `group`; it returns the message's `source_id` as the channel
      tells it; `again` has the platform tell the last message once more
      (some doubles: `back` messages before the last one); where people can change what they wrote, `change` gives
      the last one another text;
    - `press` presses the button of that number under a message;
    - `received` is how many of those things the platform knows to have arrived.
    """

    chats: Chats

    async def say(
        self, text: str, *, chat: str = "1", user: str = "7", name: str = "Ann", group: bool = False, thread: str = ""
    ) -> str: ...

    async def again(self) -> None: ...

    async def press(self, message: str, choice: int, *, user: str = "7") -> None: ...

    def received(self) -> int: ...
