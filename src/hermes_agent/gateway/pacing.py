"""Paces: when the next message to a chat may go out, and how many of each person come in."""

from __future__ import annotations

from hermes_agent.core.clock import Clock
from hermes_agent.core.inbound import Conversation
from hermes_agent.gateway.channel import Pace

MINUTE = 60.0
MANY = 1000
"""Chats that are remembered before those whose turn has come are forgotten."""


class Pacer:
    """Gives out turns, first come first served, as far apart as `pace` says. A platform that says "not now" holds
    everybody back for as long as it asks."""

    def __init__(self, pace: Pace, clock: Clock) -> None:
        self._pace = pace
        self._clock = clock
        self._next = 0.0
        self._chats: dict[str, float] = {}

    async def turn(self, to: Conversation) -> None:
        """Return when a message may be sent there."""
        at = self.reserve(to)
        wait = at - self._clock.monotonic()
        if wait > 0:
            await self._clock.sleep(wait)

    def reserve(self, to: Conversation) -> float:
        """Take the next turn of a chat; when it is (of `monotonic`)."""
        now = self._clock.monotonic()
        apart = self._pace.chat if to.chat_kind == "dm" else self._pace.group
        mine = max(now, self._next)
        self._next = mine + self._pace.every
        at = max(mine, self._chats.get(to.chat, 0.0))
        if apart:
            self._chats[to.chat] = at + apart
            if len(self._chats) > MANY:
                self._chats = {chat: until for chat, until in self._chats.items() if until > now}
        return at

    def has_room(self, to: Conversation) -> bool:
        """Whether there is a turn now that nobody waits for, which is taken then: for signs, which may be left out. It
        takes none of the chat's own turns."""
        now = self._clock.monotonic()
        if now < max(self._next, self._chats.get(to.chat, 0.0)):
            return False
        self._next = now + self._pace.every
        return True

    def hold(self, seconds: float, to: Conversation | None = None) -> None:
        """Nobody's turn comes within that time, or nobody's of one chat."""
        until = self._clock.monotonic() + seconds
        if to is None:
            self._next = max(self._next, until)
        else:
            self._chats[to.chat] = max(self._chats.get(to.chat, 0.0), until)


class Minutes:
    """Counts what each person writes, from their first message on for a minute, then anew."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}

    def count(self, who: str) -> int:
        """The number of this message in its minute."""
        now = self._clock.monotonic()
        since, count = self._counts.get(who, (now, 0))
        if now - since > MINUTE:
            since, count = now, 0
            self._counts = {key: each for key, each in self._counts.items() if now - each[0] <= MINUTE}
        self._counts[who] = (since, count + 1)
        return count + 1
