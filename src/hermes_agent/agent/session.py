"""A conversation while a run works on it: the view that is folded from the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hermes_agent.core.effects import Effect
from hermes_agent.core.events import (
    Answered,
    Asked,
    Entry,
    MessageTaken,
    PrefixFrozen,
    Replied,
    RunEnded,
    RunStarted,
    ToolEnded,
    ToolStarted,
    Undone,
)
from hermes_agent.core.messages import Message, Role, ToolCall, ToolResult


@dataclass(slots=True, kw_only=True)
class Session:
    """What a run knows of its conversation.

    `messages` is what a model is shown; within a run it only grows. `number` is the log's last event. `turn` counts the
    model calls of the run. `calls` are the ids of all tool calls ever, also of those that were taken back. `started`
    maps the calls whose intent is in the log and whose result is not to their effect.
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
    asked: set[str] = field(default_factory=set)
    draft: list[str] = field(default_factory=list)
    _marks: list[tuple[int, int]] = field(default_factory=list)
    _waiting: list[ToolCall] = field(default_factory=list)
    _results: dict[str, Message] = field(default_factory=dict)

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last reply that have no result yet, in the order asked."""
        return tuple(call for call in self._waiting if call.id not in self._results)

    @property
    def awaits_reply(self) -> bool:
        """Whether a model should speak next: the last word is a person's or a tool's."""
        return bool(self.messages) and (self.messages[-1].role is not Role.ASSISTANT or bool(self._waiting))

    def apply(self, entry: Entry) -> None:
        """Fold one event into the view. Results appear in the order asked, whatever the order they came in."""
        self.number = entry.number
        match entry.event:
            case MessageTaken(message=message):
                self._say(entry.number, message)
            case Replied(message=message, turn=turn):
                self.turn = turn
                self._say(entry.number, message)
                self._waiting = list(message.tool_calls)
                self.calls.update(call.id for call in message.tool_calls)
            case ToolEnded(message=message):
                self._answer(entry.number, message)
            case Undone(to=to):
                self._undo(to)
            case _:
                self._note(entry)

    def _note(self, entry: Entry) -> None:
        """Fold an event that says no words."""
        match entry.event:
            case RunStarted():
                self.run, self.running, self.turn = entry.run, True, 0
            case RunEnded():
                self.running = False
                self.started.clear()
            case PrefixFrozen(hash=prefix_hash):
                self.prefix_hash = prefix_hash
            case ToolStarted(call_id=call_id, effect=effect):
                self.started[call_id] = effect
            case Asked(question=question):
                self.asked.add(question)
            case Answered(question=question, answer=answer):
                self.answers[question] = answer
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

    def _undo(self, to: int) -> None:
        """Show the view as it was after the event `to`; a list of its own, because the old one may be in use."""
        keep = max((length for number, length in self._marks if number <= to), default=0)
        self.messages = self.messages[:keep]
        self._marks = [mark for mark in self._marks if mark[0] <= to]
        self._waiting, self._results = [], {}
        self.started.clear()


def fold(session: Session, entries: Iterable[Entry]) -> Session:
    """The session after these events, in order."""
    for entry in entries:
        session.apply(entry)
    return session
