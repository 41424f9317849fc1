"""When a conversation is shortened: before a request that would not fit, or after one that did not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hermes_agent.agent.compaction.plan import GAIN, OUTPUT_SHARE, Room
from hermes_agent.agent.compaction.settings import CompactionSettings
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import LARGEST_SCALE, Session
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Cause

QUIET_SHARE = (1 - OUTPUT_SHARE) / LARGEST_SCALE
REFUSED_SHARE = 0.7
"""Of the size that a provider refused, what is taken for its window."""


class Shortens(Protocol):
    """- `shorten` makes the view smaller and commits that; False where there is little to gain or a call is open;
    - raises `StoreError` and nothing else."""

    async def shorten(
        self, session: Session, journal: Journal, room: Room, *, cause: Cause, focus: str = ""
    ) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """Keeps the view within the window. `shortener` makes what does the work, when it is first needed."""

    settings: CompactionSettings
    shortener: Callable[[], Shortens]

    async def fit(self, session: Session, journal: Journal, window: int) -> None:
        """Shorten the view where it has outgrown the window, in tokens. What could not be made much smaller is not
        tried again before as much as it should have gained has come since."""
        # Far from full whatever the provider's tokens are: the common case costs no more than a sum.
        if session.prefix_tokens + sum(session.weights) < QUIET_SHARE * self.settings.threshold * window:
            return
        room = self.room(session, window)
        if self.settings.enabled and sum(session.weights) >= max(room.limit, self._held_back(session, room)):
            await self.shortener().shorten(session, journal, room, cause="window")

    async def refused(self, session: Session, journal: Journal) -> bool:
        """Shorten a view that a provider found too long, whatever its window is said to be. False where it cannot be
        made any shorter."""
        room = self.room(session, round(REFUSED_SHARE * _held(session)))
        if not self.settings.enabled:
            return False
        return await self.shortener().shorten(session, journal, room, cause="refused")

    async def asked(self, session: Session, journal: Journal, window: int, focus: str = "") -> bool:
        """Shorten the view because the person wants it, as if it filled the window; `focus` is what the summary shall
        keep above all."""
        room = self.room(session, min(window, _held(session)))
        return await self.shortener().shorten(session, journal, room, cause="command", focus=focus)

    def room(self, session: Session, window: int) -> Room:
        """What the window, in the provider's tokens, leaves for the messages of this session, in bytes / 4."""
        return Room.within(round(window / session.scale), session.prefix_tokens, self.settings)

    def _held_back(self, session: Session, room: Room) -> float:
        """The size under which it is not tried again: what the last compaction left, and a share more."""
        return sum(session.weights[: session.compacted]) + GAIN * room.limit if session.compacted else 0.0


def _held(session: Session) -> int:
    """What a request would take now, in the provider's tokens."""
    return round((session.prefix_tokens + sum(session.weights)) * session.scale)
