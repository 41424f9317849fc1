"""Decides when to compact a conversation: before a request that would not fit, or after the provider refused one as
too long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import LARGEST_SCALE, Session
from hermes_agent.agent.settings import CompactionSettings
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Cause
from hermes_agent.core.messages import Message, Role, ToolResult

OUTPUT_SHARE = 0.15
"""Share of the window that is left for the reply."""

PRUNED_TOKENS = 60
"""What one line of a pruned result takes; smaller results are not worth it."""

HEAD_SHARE = 0.1
"""Share of the window up to which the person's first message, the task, stays word for word."""

GAIN = 0.1
"""A compaction that would gain less than this share is not made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A token budget for messages alone, without the prefix: compaction starts above `limit` and aims at `target`;
    `tail` is the most that recent messages may keep, `head` the most for the first ones."""

    limit: int
    target: int
    tail: int
    head: int

    @staticmethod
    def within(window: int, prefix: int, settings: CompactionSettings) -> Room:
        """The budget in a window of which `prefix` tokens are taken; always at least a little."""
        usable = max(512, round(window * (1 - OUTPUT_SHARE)) - prefix)
        return Room(
            limit=round(usable * settings.threshold),
            target=round(usable * min(settings.target, settings.threshold)),
            tail=round(usable * min(settings.tail, settings.target)),
            head=round(usable * HEAD_SHARE),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A compaction plan: keep the first `head` messages, replace those up to `upto`, keep the rest; the results of
    the calls in `pruned` shrink to one line each."""

    head: int
    upto: int
    pruned: tuple[str, ...]


def cut(messages: Sequence[Message], weights: Sequence[int], room: Room) -> Cut:
    """Choose the head and tail to keep, and the results to prune in them.

    The tail starts with a user's or an assistant's message, never between a call and its result, and always
    contains the last user message.
    """
    head = _head(messages, weights, room)
    upto = max(head, _tail_start(messages, weights, room))
    return Cut(head=head, upto=upto, pruned=prunable(messages, weights, before=upto))


def prunable(messages: Sequence[Message], weights: Sequence[int], *, before: int) -> tuple[str, ...]:
    """The calls whose results, before message index `before`, are longer than the line that would replace them."""
    return tuple(
        part.call_id
        for message, weight in zip(messages[:before], weights, strict=False)
        if message.role is Role.TOOL and weight > PRUNED_TOKENS
        for part in message.parts
        if isinstance(part, ToolResult) and not _is_pruned(part)
    )


def _is_pruned(result: ToolResult) -> bool:
    return len(result.parts) == 1 and result.text.startswith("[No longer shown: ")


def _head(messages: Sequence[Message], weights: Sequence[int], room: Room) -> int:
    """The first message, with the runtime's words beside it, where it is the person's and short enough."""
    head = taken = 0
    for message, weight in zip(messages, weights, strict=False):
        if message.role is not Role.USER or (head and not message.is_runtime) or taken + weight > room.head:
            break
        head, taken = head + 1, taken + weight
    return head


def _tail_start(messages: Sequence[Message], weights: Sequence[int], room: Room) -> int:
    last_user = max(
        (place for place, message in enumerate(messages) if message.role is Role.USER and not message.is_runtime),
        default=len(messages),
    )
    start, taken = len(messages), 0
    for place in range(len(messages) - 1, -1, -1):
        taken += weights[place]
        if taken > room.tail and start < len(messages):
            break
        if messages[place].role is not Role.TOOL:
            start = place
            if taken > room.tail:
                break
    # The last words of the person stay even where a long piece of work has followed them, if they fit beside it.
    if last_user < start and sum(weights[last_user:]) <= room.target:
        start = last_user
    return start


QUIET_SHARE = (1 - OUTPUT_SHARE) / LARGEST_SCALE
REFUSED_SHARE = 0.7
"""Of the size that a provider refused, what is taken for its window."""


class Shortens(Protocol):
    """Shortens a conversation.

    - `shorten` makes the view smaller and commits that; False where little can be gained or a call is open;
    - raises only `StoreError`.
    """

    async def shorten(
        self, session: Session, journal: Journal, room: Room, *, cause: Cause, focus: str = ""
    ) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """Keeps the conversation within the model's window. `shortener` makes the object that does the work, on first
    use."""

    settings: CompactionSettings
    shortener: Callable[[], Shortens]

    async def fit(self, session: Session, journal: Journal, window: int) -> None:
        """Compact the view if it exceeds the window, in tokens. After little gain the next attempt waits until the
        missing gain has been added."""
        # Far from full whatever the provider's tokens are: the common case costs no more than a sum.
        if session.prefix_tokens + sum(session.weights) < QUIET_SHARE * self.settings.threshold * window:
            return
        room = self.room(session, window)
        if self.settings.enabled and sum(session.weights) >= max(room.limit, self._held_back(session, room)):
            await self.shortener().shorten(session, journal, room, cause="window")

    async def refused(self, session: Session, journal: Journal) -> bool:
        """Compact a view that a provider refused as too long, whatever its window. False where it cannot get
        shorter."""
        room = self.room(session, round(REFUSED_SHARE * _held(session)))
        if not self.settings.enabled:
            return False
        return await self.shortener().shorten(session, journal, room, cause="refused")

    async def asked(self, session: Session, journal: Journal, window: int, focus: str = "") -> bool:
        """Compact the view at the person's request, as if it filled the window; `focus` is what the summary must
        keep."""
        room = self.room(session, min(window, _held(session)))
        return await self.shortener().shorten(session, journal, room, cause="command", focus=focus)

    def room(self, session: Session, window: int) -> Room:
        """The budget for this session's messages, in bytes / 4, in a window of provider tokens."""
        return Room.within(round(window / session.scale), session.prefix_tokens, self.settings)

    def _held_back(self, session: Session, room: Room) -> float:
        """The size under which it is not tried again: what the last compaction left, and a share more."""
        return sum(session.weights[: session.compacted]) + GAIN * room.limit if session.compacted else 0.0


def _held(session: Session) -> int:
    """What a request would take now, in the provider's tokens."""
    return round((session.prefix_tokens + sum(session.weights)) * session.scale)
