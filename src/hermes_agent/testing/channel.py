"""Fake chat platform and channel in memory, for gateway tests and as the simplest example of the `Channel` contract."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import NoReturn

from hermes_agent.core.chat import Conversation
from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.gateway.channel import (
    Abilities,
    Channel,
    Hear,
    Heard,
    Kind,
    Media,
    MessageGone,
    Needs,
    NeverHere,
    NotNow,
    OutcomeUnknown,
    Pace,
    Part,
    Pressed,
    Said,
    Sender,
    TokenRefused,
)
from hermes_agent.gateway.dispatcher import Dispatcher, dispatching, is_control
from hermes_agent.testing.platform import TITLE, Chats, Shown, Trouble

ABILITIES = Abilities(
    longest_message=200,
    edit=True,
    delete=True,
    threads=True,
    buttons=8,
    typing=5.0,
    largest_file=1_000_000,
    hears_edits=True,
)


class FakePlatform:
    """In-memory chat platform: simulates what people send and records what the agent shows. Implements `Double`."""

    def __init__(self, abilities: Abilities = ABILITIES, *, name: str = "fake", clock: Clock | None = None) -> None:
        self.chats = Chats()
        self.abilities = abilities
        self.name = name
        self.ailment = ""
        self.waiting: asyncio.Queue[Heard] = asyncio.Queue()
        self.words: list[str] = []
        self.sent: dict[str, str] = {}
        self.files: dict[str, bytes | Callable[[], Awaitable[bytes]]] = {}
        self._clock = clock or SystemClock()
        self._last: Heard | None = None

    def kind(self, *, pace: Pace | None = None, hash_ids: bool = False) -> Kind:
        """The entry that this channel would have in the table of channels."""
        return Kind(
            name=self.name,
            title="Fake",
            abilities=self.abilities,
            pace=pace or Pace(edit=0.0, draft=0.0),
            secrets=("FAKE_BOT_TOKEN",),
            setup=("There is nothing to set up.",),
            make=self.made,
            hash_ids=hash_ids,
        )

    def made(self, _: Needs) -> Channel:
        """Factory of a channel to this platform."""
        return FakeChannel(self)

    async def say(  # noqa: PLR0913  what a person's message is told by
        self,
        text: str,
        *,
        chat: str = "1",
        user: str = "7",
        name: str = "Ann",
        group: bool = False,
        thread: str = "",
        addressed: bool = False,
        media: tuple[Media, ...] = (),
        source_id: str = "",
        edited: bool = False,
        bot: bool = False,
        title: str | None = None,
    ) -> str:
        id_ = source_id or f"{chat}:{self.chats.next_id()}"
        await self.tell(
            Said(
                source_id=id_,
                where=self.where(chat, thread=thread, group=group),
                sender=Sender(user=user, name=name, bot=bot),
                text=text,
                at=self._clock.now(),
                addressed=addressed,
                media=media,
                edited=self.chats.next_id() if edited else "",
                title=(TITLE if group else "") if title is None else title,
            )
        )
        return id_

    async def again(self) -> None:
        assert self._last is not None
        await self.tell(self._last)

    async def change(self, text: str) -> None:
        assert isinstance(self._last, Said)
        await self.tell(replace(self._last, text=text, edited=self.chats.next_id()))

    async def press(self, message: str, choice: int, *, user: str = "7") -> None:
        shown = self.chats.messages[message]
        slot = int(shown.written)
        await self.tell(
            Pressed(
                source_id=f"press:{self.chats.next_id()}",
                where=self.where(shown.chat, thread=shown.thread),
                sender=Sender(user=user),
                slot=slot,
                choice=choice,
                at=self._clock.now(),
            )
        )

    async def tell(self, heard: Heard) -> None:
        """Deliver an event to the channel."""
        self._last = heard
        await self.waiting.put(heard)

    def received(self) -> int:
        return len(self.words)

    def where(self, chat: str, *, thread: str = "", group: bool = False) -> Conversation:
        """A chat of this platform."""
        return Conversation(platform=self.name, chat_kind="group" if group else "dm", chat=chat, thread=thread)


class FakeKept:
    """In-memory key-value store for a channel's persistent facts."""

    def __init__(self) -> None:
        self.texts: dict[str, dict[str, str]] = {}

    async def of(self, place: str) -> Mapping[str, str]:
        return dict(self.texts.get(place, {}))

    async def set(self, place: str, name: str, value: str) -> None:
        self.texts.setdefault(place, {})[name] = value


class FakeChannel(Channel):
    """A `Channel` connected to a `FakePlatform`."""

    def __init__(self, platform: FakePlatform) -> None:
        self.platform = platform
        self.chats = platform.chats
        self.closed = False

    async def listen(self, hear: Hear) -> None:
        open_: list[Heard] = []
        try:
            async with dispatching() as dispatcher:
                await self._follow(dispatcher, hear, open_)
        finally:
            for heard in open_:  # It was not taken in: it is told again.
                self.platform.waiting.put_nowait(heard)
                self.platform.waiting.task_done()

    async def _follow(self, dispatcher: Dispatcher, hear: Hear, open_: list[Heard]) -> None:
        while (trouble := self.chats.trouble("listen")) is None:
            open_.append(heard := await self.platform.waiting.get())
            control = isinstance(heard, Pressed) or (isinstance(heard, Said) and is_control(heard.text))
            await dispatcher.put(heard.where.chat, partial(self._take, heard, hear, open_), control=control)
        raise NotNow(f"The connection broke ({trouble}).")

    async def _take(self, heard: Heard, hear: Hear, open_: list[Heard]) -> None:
        self.platform.words.append(await hear(heard))
        del open_[next(at for at, each in enumerate(open_) if each is heard)]
        self.platform.waiting.task_done()

    async def fetch(self, media: Media, most: int) -> bytes:  # noqa: ARG002  the Protocol's shape
        found = self.platform.files[media.reference]
        return found if isinstance(found, bytes) else await found()

    async def send(self, to: Conversation, part: Part, key: str) -> str:
        deaf = self._trouble("send")
        shown = Shown(
            id=self.chats.next_id(),
            chat=to.chat,
            thread=to.thread,
            text=part.text,
            buttons=tuple(button.label for button in part.buttons),
            file=part.file.name if part.file else "",
            answers=part.answers,
            key=key if self.platform.abilities.keyed else "",
            written=str(part.slot),
        )
        receipt = self.platform.sent[key] = self.chats.show(shown).id
        if deaf:
            raise OutcomeUnknown("The answer was lost.")
        return receipt

    async def edit(self, to: Conversation, receipt: str, part: Part) -> None:
        deaf = self._trouble("edit")
        labels = tuple(button.label for button in part.buttons)
        if not self.chats.change(receipt, part.text, labels, str(part.slot)):
            raise MessageGone(f"There is no message {receipt} in {to.chat}.")
        if deaf:
            raise OutcomeUnknown("The answer was lost.")

    async def delete(self, to: Conversation, receipt: str) -> None:
        self._trouble("delete")
        if self.chats.messages.pop(receipt, None) is None:
            raise MessageGone(f"There is no message {receipt} in {to.chat}.")

    async def find(self, to: Conversation, part: Part, key: str, since: float) -> str | None:  # noqa: ARG002  the Protocol's shape
        self._trouble("find")
        receipt = self.platform.sent.get(key)
        return receipt if receipt in self.chats.messages else None

    async def draft(self, to: Conversation, text: str, key: str) -> None:  # noqa: ARG002  the Protocol's shape
        if self._trouble("draft"):
            raise NotNow("The answer was lost.")
        self.chats.draft(to.chat, text)

    async def typing(self, to: Conversation) -> None:
        self._trouble("typing")
        self.chats.typing.append(to.chat)

    async def check(self) -> str:
        if self.platform.ailment:
            raise TokenRefused(self.platform.ailment)
        return "@fake"

    async def close(self) -> None:
        self.closed = True

    def _trouble(self, call: str) -> bool:
        """Raise the fault ordered for this call. Returns whether the call succeeds but its answer is lost."""
        match self.chats.trouble(call):
            case Trouble.BUSY:
                raise NotNow("Too many requests.", retry_after=float(self.chats.retry_after))
            case Trouble.BROKEN | Trouble.CUT:
                raise NotNow("The platform failed.")
            case Trouble.GONE:
                raise_gone(call)
            case Trouble.DEAF | Trouble.GARBLED:
                return True
            case None:
                pass
        return False


def raise_gone(call: str) -> NoReturn:
    """Raise the error of a call whose chat or message does not exist."""
    if call in ("send", "draft"):
        raise NeverHere("The chat is gone.")
    raise MessageGone("The message is gone.")
