"""State shared by fake chat platforms: chats with their messages, people who write, and faults on demand."""

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
    """Fault of a call to a fake chat platform.

    `busy`: rate limited; `broken`: 5xx error; `cut`: connection lost before anything was done; `deaf`: done, but the
    answer is lost; `gone`: the chat or message does not exist; `garbled`: an invalid answer.
    """

    BUSY = "busy"
    BROKEN = "broken"
    CUT = "cut"
    DEAF = "deaf"
    GONE = "gone"
    GARBLED = "garbled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A message of the agent on a fake platform, as people see it now. `written` is its text as sent over the wire."""

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
    """Records what the agent wrote on a fake platform, in order, and holds the faults that a test ordered.

    `retry_after`: the delay a busy platform answers with. `drafts`: the streamed texts that each chat showed before a
    message, in their successive states; a message ends them. `calls` counts calls by name, including refused ones.
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
        """Take the next fault ordered for this call, if any, and count the call."""
        self.calls[call] += 1
        for position, (name, trouble) in enumerate(self.troubles):
            if name in (call, "*"):
                del self.troubles[position]
                return trouble
        return None

    def order(self, trouble: Trouble, call: str = "*", times: int = 1) -> None:
        """Order a fault for the next calls of that name (`*`: any)."""
        self.troubles.extend([(call, trouble)] * times)

    def show(self, message: Shown) -> Shown:
        """Show a new message; a repeated key returns the existing one."""
        if message.key and message.key in self.keys:
            return self.messages[self.keys[message.key]]
        self.messages[message.id] = message
        self.drafts.pop(message.chat, None)
        if message.key:
            self.keys[message.key] = message.id
        return message

    def change(self, id_: str, text: str, buttons: tuple[str, ...] = (), written: str = "") -> bool:
        """Edit a message; False if it does not exist."""
        if id_ not in self.messages:
            return False
        old = self.messages[id_]
        self.messages[id_] = replace(old, text=text, buttons=buttons, written=written, edits=old.edits + 1)
        return True

    def draft(self, chat: str, text: str) -> None:
        """Show a draft text."""
        self.drafts.setdefault(chat, []).append(text)

    def of(self, chat: str) -> list[Shown]:
        """The agent's visible messages in a chat, oldest first."""
        return [message for message in self.messages.values() if message.chat == chat]


@dataclass(slots=True)
class Held:
    """Holds back events of a fake platform while `holding`, until `tell_late`, to test late and reordered delivery."""

    holding: bool = False
    late: list[Callable[[], Awaitable[None] | None]] = field(default_factory=list)

    async def tells(self, tell: Callable[[], Awaitable[None] | None]) -> None:
        """Deliver an event now, or hold it."""
        if self.holding:
            self.late.append(tell)
        elif (telling := tell()) is not None:
            await telling

    async def tell_late(self) -> None:
        """Deliver the held events."""
        self.holding = False
        while self.late:
            await self.tells(self.late.pop(0))


class Double(Protocol):
    """A fake chat platform in memory or on loopback, for the channel contract suite and load tests.

    - `chats` records what the agent wrote, and takes fault orders;
    - `say` has a person write a message (in a group if `group`) and returns its `source_id`; `again` redelivers the
      last message (some doubles: `back` messages before it); where messages can be edited, `change` edits the last
      one;
    - `press` presses the button of that number under a message;
    - `received` counts the events that the channel has acknowledged.
    """

    chats: Chats

    async def say(
        self, text: str, *, chat: str = "1", user: str = "7", name: str = "Ann", group: bool = False, thread: str = ""
    ) -> str: ...

    async def again(self) -> None: ...

    async def press(self, message: str, choice: int, *, user: str = "7") -> None: ...

    def received(self) -> int: ...
