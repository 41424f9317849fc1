"""Telling the owner, in the home chat of a channel, what nobody else can be told any more."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hermes_agent.app.chats.home_chats import place_at
from hermes_agent.app.chats.people import NONE, People
from hermes_agent.app.system import System
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import TOLD, Content, Letter, Slot, lost

DAY = 86_400.0


class Notices:
    """Writes to the homes of channels (`/sethome`); where there is none, the log and `hermes gateway status` are all
    that tells. `wake` is called when there is something to deliver."""

    def __init__(self, runtime: System, people: People, wake: Callable[[], None]) -> None:
        self._store = runtime.store
        self._people = people
        self._clock = runtime.clock
        self._wake = wake

    async def undelivered(self, slot: Slot, error: str) -> None:
        """Something will never be delivered. Raises `StoreError`."""
        if not slot.key.startswith(TOLD):
            text = f"What I wanted to say in the chat {slot.to.chat} could not be delivered: {error}"
            await self._send(slot.to, f"slot {slot.id}", text)

    async def lost(self, slot: Slot, error: str) -> None:
        """A defect keeps something from being shown: whoever waits for it there is told. Raises `StoreError`."""
        if not slot.key.startswith(TOLD):
            await self._store.write(partial(self._store.outbox.put, letter=lost(slot.id, slot.to, error)))
            self._wake()

    async def removed(self, where: Conversation, reason: str) -> None:
        """The agent can no longer write somewhere; told once a day. Raises `StoreError`."""
        day = int(self._clock.now() // DAY)
        await self._send(where, f"{where.key} {day}", f"I can no longer write in the chat {where.chat}: {reason}")

    async def _send(self, about: Conversation, key: str, text: str) -> None:
        home = place_at(about.platform, self._people.channels.get(about.platform, NONE).home)
        if home is None or (home.chat, home.thread) == (about.chat, about.thread):
            return
        letter = Letter(key=f"{TOLD}{key}", to=home, content=Content(text=text))
        await self._store.write(partial(self._store.outbox.put, letter=letter))
        self._wake()
