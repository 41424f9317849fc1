"""State of a conversation during a run: a view folded from the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable, Sequence
from dataclasses import field, replace

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import (
    Answered,
    Asked,
    Compacted,
    ContextAdded,
    Delegated,
    Entry,
    MessageTaken,
    Pinned,
    PrefixFrozen,
    Replied,
    RunEnded,
    RunStarted,
    ToolEnded,
    ToolStarted,
    Undone,
    Unpinned,
)
from hermes_agent.core.messages import (
    LABELS,
    Message,
    Origin,
    Role,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    Trust,
    trust_in,
    trust_of,
)
from hermes_agent.core.section import tokens_of

LARGEST_SCALE = 4.0
MANY = 50
"""Events whose folding would hold the event loop."""
PRUNED_WORDS = 80
"""Characters of a tool's answer that its one line keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """The view before the compaction at event `number`, for an undo that goes back before it."""

    number: int
    messages: list[Message]
    marks: list[tuple[int, int]]


@dataclass(slots=True, kw_only=True)
class Session:
    """State of one conversation during a run.

    `messages` is what the model sees; within a run it grows, and shrinks by a compaction or an undo. `number` is
    the log's last event. `turn` counts the model calls of the run. `calls` are the ids of all tool calls in the
    log, also of undone ones. `started` maps calls with a logged intent and no result to their effect. `answers` and
    `answerers` map questions to what was answered and its label. `speakers` are the principals whose messages this
    run took, `heard` counts those messages, `rounds` the replies that requested tools; `is_cut`: its last reply ended
    at the length limit. `began` is the event number at which the run began, `answered` the tools that returned without
    an error at any time, `delegated` the sessions that its calls gave a goal. `mark` is the marker of the runtime's own
    notes, `told` the hash of the last text of each source of them, `pins` what no compaction removes. `compacted` is
    the length of `messages` after the last compaction, `prefix_tokens` the size of the prefix by bytes / 4,
    `prefix_trust` its worst class.
    """

    id: str
    workspace: str = ""
    messages: list[Message] = field(default_factory=list)
    number: int = 0
    turn: int = 0
    calls: set[str] = field(default_factory=set)
    prefix_hash: str = ""
    run: str = ""
    running: bool = False
    started: dict[str, Effect] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    answerers: dict[str, Origin] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    speakers: set[str] = field(default_factory=set)
    heard: int = 0
    rounds: int = 0
    began: int = 0
    answered: set[str] = field(default_factory=set)
    delegated: set[str] = field(default_factory=set)
    is_cut: bool = False
    draft: list[str] = field(default_factory=list)
    mark: str = ""
    told: dict[str, str] = field(default_factory=dict)
    pins: dict[str, Pinned] = field(default_factory=dict)
    compacted: int = 0
    prefix_tokens: int = 0
    prefix_trust: Trust = Trust.CLEAN
    _measured: tuple[int, int] = (0, 0)
    _weights: list[int] = field(default_factory=list)
    _past: list[_Past] = field(default_factory=list)
    _marks: list[tuple[int, int]] = field(default_factory=list)
    _waiting: list[ToolCall] = field(default_factory=list)
    _results: dict[str, Message] = field(default_factory=dict)

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last reply without a result, in order."""
        return tuple(call for call in self._waiting if call.id not in self._results)

    @property
    def weights(self) -> list[int]:
        """The size of each message in tokens by bytes / 4; incremental."""
        for message in self.messages[len(self._weights) :]:
            self._weights.append(tokens_of(message))
        return self._weights

    @property
    def scale(self) -> float:
        """The provider's tokens per token of ours (4 bytes), from its last answer; 1 to 4."""
        count, counted = self._measured
        held = self.prefix_tokens + sum(self.weights[:count])
        return min(LARGEST_SCALE, max(1.0, counted / held)) if counted and held else 1.0

    @property
    def awaits_reply(self) -> bool:
        """Whether the model speaks next: the last message is a person's or a tool's."""
        return bool(self.messages) and (self.messages[-1].role is not Role.ASSISTANT or bool(self._waiting))

    def trust(self, own: Origin = Origin.OWNER) -> Trust:
        """The worst class in view, and so that of what the model says; `own` is the label of the session's person."""
        return max(self.prefix_trust, trust_in(self.messages, own))

    @property
    def label(self) -> Origin:
        """The label of a text that is made of the view."""
        own = self.trust(Origin.MEMBER) is Trust.CLEAN and self.trust() is Trust.OUTSIDE
        return Origin.MEMBER if own else LABELS[self.trust()]

    def apply(self, entry: Entry) -> None:
        """Fold one event into the view. Results appear in the order of their calls."""
        self.number = entry.number
        match entry.event:
            case MessageTaken(message=message, principal=principal, inbox=inbox):
                self._say(entry.number, message)
                self.speakers.update(filter(None, (principal,)))
                self.heard += bool(inbox)
            case Replied(message=message, turn=turn, usage=usage, stop=stop):
                self.turn, self.is_cut = turn, stop is StopReason.LENGTH
                self._measured = (len(self.messages), usage.input if usage.known else 0)
                self._say(entry.number, message)
                self._waiting = list(message.tool_calls)
                self.rounds += bool(message.tool_calls)
                self.calls.update(call.id for call in message.tool_calls)
            case ToolEnded(message=message, tool=tool, is_error=failed):
                self._answer(entry.number, message)
                self.answered.update(() if failed else (tool,))
            case ContextAdded(message=message, mark=mark, sections=sections):
                self.mark = mark
                self.told.update((section.name, section.hash) for section in sections)
                self._say(entry.number, message)
            case Compacted():
                self._compact(entry.number, entry.event)
            case Undone(to=to):
                self._undo(to)
            case _:
                self._note(entry)

    def _note(self, entry: Entry) -> None:
        """Fold an event that says no words."""
        match entry.event:
            case RunStarted():
                self.run, self.running, self.turn, self.heard, self.rounds = entry.run, True, 0, 0, 0
                self.began, self.is_cut = entry.number, False
                self.speakers.clear()
            case RunEnded():
                self.running = False
                self.started.clear()
                self.asked.intersection_update(self.answers)  # Nobody waits for the others any more.
            case PrefixFrozen(hash=prefix_hash, sections=sections):
                self.prefix_hash = prefix_hash
                self.prefix_tokens = sum(section.tokens for section in sections)
                self.prefix_trust = max((section.origin.trust for section in sections), default=Trust.CLEAN)
            case ToolStarted(call_id=call_id, effect=effect):
                self.started[call_id] = effect
            case Asked(question=question):
                self.asked.add(question)
            case Answered(question=question, answer=answer, origin=origin):
                self.answers[question] = answer
                self.answerers[question] = origin
            case Delegated(session=child):
                self.delegated.add(child)
            case Pinned(pin=pin):
                self.pins[pin] = entry.event
            case Unpinned(pin=pin):
                self.pins.pop(pin, None)
            case _:
                pass

    def _say(self, number: int, message: Message) -> None:
        self._give_up_waiting(number)
        self.messages.append(message)
        self._marks.append((number, len(self.messages)))

    def _answer(self, number: int, message: Message) -> None:
        for part in message.parts:
            if isinstance(part, ToolResult):
                self._results[part.call_id] = message
                self.started.pop(part.call_id, None)
        if not self.open_calls:
            self._give_up_waiting(number)

    def _give_up_waiting(self, number: int) -> None:
        """Put the results that there are into the view."""
        results = [self._results[call.id] for call in self._waiting if call.id in self._results]
        self._waiting, self._results = [], {}
        if results:
            self.messages.extend(results)
            self._marks.append((number, len(self.messages)))

    def _compact(self, number: int, event: Compacted) -> None:
        """Show the shorter view, in a list of its own, because the old one may be in use."""
        self._past.append(_Past(number=number, messages=self.messages, marks=self._marks))
        shown = [*self.messages[: event.head], *filter(None, [event.note]), *self.messages[event.upto :]]
        self.messages = [pruned(message, frozenset(event.pruned)) for message in shown]
        self._marks = [(number, len(self.messages))]
        self._weights, self._measured = [], (0, 0)
        self.compacted = len(self.messages)
        self.told.clear()

    def _undo(self, to: int) -> None:
        """Show the view as it was after the event `to`; a list of its own, because the old one may be in use."""
        while self._past and to < self._past[-1].number:
            past = self._past.pop()
            self.messages, self._marks, self._weights = past.messages, past.marks, []
            self.compacted = 0
        keep = max((length for number, length in self._marks if number <= to), default=0)
        self.messages = self.messages[:keep]
        self._weights, self._measured = self._weights[:keep], (0, 0)
        self.told.clear()
        self._marks = [mark for mark in self._marks if mark[0] <= to]
        self._waiting, self._results = [], {}
        self.started.clear()


def pruned(message: Message, calls: frozenset[str]) -> Message:
    """The message with the results of these calls shortened to a line each."""
    if message.role is not Role.TOOL or not calls:
        return message
    parts = tuple(
        replace(part, parts=(_one_line(part),)) if isinstance(part, ToolResult) and part.call_id in calls else part
        for part in message.parts
    )
    return replace(message, parts=parts)


def _one_line(result: ToolResult) -> Text:
    others = sum(not isinstance(part, Text) for part in result.parts)
    first, _, _ = result.text.strip().partition("\n")
    size = f"{len(result.text):,} characters" + (f" and {others} attachment(s)" if others else "")
    words = f"[No longer shown: {size}. It began: {first[:PRUNED_WORDS]}]"
    return Text(text=words, origin=LABELS[trust_of(result)])


def fold(session: Session, entries: Iterable[Entry]) -> Session:
    """Apply these events in order; the session."""
    for entry in entries:
        session.apply(entry)
    return session


async def folded(session: Session, pages: AsyncIterable[Sequence[Entry]]) -> Session:
    """The same for a log read in pages; long ones are decoded in a thread."""
    async for page in pages:
        if len(page) > MANY:
            await asyncio.to_thread(fold, session, page)
        else:
            fold(session, page)
    return session
