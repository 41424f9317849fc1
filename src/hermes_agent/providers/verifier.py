"""Puts a conversation's messages into the order that providers accept, with the pictures and documents that the
model takes; what is stored is not changed.

Providers want user and assistant in turn, beginning with the user; a result for every call, right after the calls;
no empty parts; thinking only back to the model that made it; no picture that the model cannot take; names of tools
that it can. A conversation that was stopped, branched, steered or begun on another model breaks each of these rules
now and then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import File, Image, Message, Origin, Part, Role, Text, Thinking, ToolCall, ToolResult
from hermes_agent.providers.reading import written
from hermes_agent.providers.tool_schemas import PLAIN, ToolRules, wire_name

MEGABYTE = 1_000_000
# How the base64 of a picture begins, whatever it is called.
BEGINNINGS = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRules:
    """A dialect's limits on pictures in one request: media types, bytes of one picture, and number; None: no limit."""

    types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
    largest: int | None = 20 * MEGABYTE
    most: int | None = None


ANY_PICTURE = PictureRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Media that one model accepts: pictures within `rules` or none, and documents."""

    images: bool = True
    files: bool = True
    rules: PictureRules = ANY_PICTURE

    def hidden(self, pictures: int) -> int:
        """How many of a conversation's earliest pictures to leave out: in steps of half the limit, so that the sent
        prefix rarely changes."""
        most = self.rules.most
        if most is None or pictures <= most:
            return 0
        step = max(1, most // 2)
        return -(-(pictures - most) // step) * step

    def takes(self, part: Part) -> bool:
        """Whether this is an acceptable picture."""
        return isinstance(part, Image) and not self._refuses(_true(part))

    def shown(self, part: Image | File) -> Image | File | Text:
        """The part if acceptable, otherwise text that says what is missing."""
        if isinstance(part, File):
            if self.files or written(part) is not None:
                return part
            return Text(
                text=f"[A document, {part.name} ({part.media_type}), that this model cannot read.]", origin=part.origin
            )
        part = _true(part)
        reason = self._refuses(part)
        return Text(text=f"[A picture ({part.media_type}) {reason}.]", origin=part.origin) if reason else part

    def _refuses(self, part: Image) -> str:
        if not self.images:
            return "that this model cannot see"
        if part.url:
            return ""
        if part.media_type not in self.rules.types:
            return "of a kind that this model cannot see"
        size = len(part.data) * 3 // 4
        if self.rules.largest is not None and size > self.rules.largest:
            most = self.rules.largest / MEGABYTE
            return f"of {size / MEGABYTE:.1f} MB, which is more than the {most:g} MB that this model takes"
        return ""


def earlier(part: Image) -> Text:
    """Text in place of one of the earliest pictures of a conversation with too many."""
    return Text(text=f"[An earlier picture ({part.media_type}), left out: there are too many.]", origin=part.origin)


def pictures_in(messages: Iterable[Message], sight: Sight) -> int:
    """The number of acceptable pictures, also in tool results."""
    parts = (part for message in messages for part in message.parts)
    every = (one for part in parts for one in (part.parts if isinstance(part, ToolResult) else (part,)))
    return sum(sight.takes(one) for one in every)


def _true(part: Image) -> Image:
    """The picture under the media type that its bytes have: a provider refuses another name."""
    if part.url:
        return part
    found = next((kind for start, kind in BEGINNINGS.items() if part.data.startswith(start)), part.media_type)
    return part if found == part.media_type else replace(part, media_type=found)


NO_RESULT = "There is no result: the call was interrupted before it could answer."
GO_ON = "Continue."
OPENING = "(The beginning of the conversation is not shown.)"


@dataclass(slots=True, kw_only=True)
class Turn:
    """One turn of the conversation: the assistant's message, or the results of its calls followed by the user's
    message."""

    role: Role
    results: list[ToolResult] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)


class Transcript:
    """The turns of one conversation as one model may see them. It follows a growing sequence of messages: only those
    added since the last `follow` are processed. `fresh` is the index of the first turn that changed since
    `mark_written` was called."""

    def __init__(self, *, maker: str, sight: Sight | None = None, rules: ToolRules = PLAIN) -> None:
        self._maker = maker
        self._sight = sight or Sight()
        self._rules = rules
        self._refused: set[str] = set()
        self._begin()

    def _begin(self) -> None:
        self.turns: list[Turn] = []
        self.fresh = 0
        self.call_ids: set[str] = set()
        self._taken: list[Message] = []
        self._pictures = 0
        self._hidden = 0
        self._passed = 0
        self._open: dict[str, ToolCall] = {}
        self._waiting: list[Part] = []

    def follow(self, messages: Sequence[Message]) -> None:
        """Process the new messages; starts over where earlier ones are not the same objects any more."""
        taken = self._taken
        known = len(taken)
        if len(messages) < known or any(old is not new for old, new in zip(taken, messages, strict=False)):
            self._begin()
            known = 0
        self._pictures += pictures_in(messages[known:], self._sight)
        hidden = self._sight.hidden(self._pictures)
        if hidden != self._hidden:
            pictures = self._pictures
            self._begin()
            self._pictures, self._hidden, known = pictures, hidden, 0
        for message in messages[known:]:
            self._take(message)
            self._taken.append(message)

    def forget(self) -> None:
        """Drop the thinking of the messages so far, which its maker refuses; starts over."""
        thoughts = (part for message in self._taken for part in message.parts if isinstance(part, Thinking))
        self._refused.update(thought.opaque for thought in thoughts)
        self._begin()

    def mark_written(self) -> None:
        """Record that the caller has written every turn so far."""
        self.fresh = len(self.turns)

    def ending(self, *, prefill: bool = False) -> tuple[int, list[Turn]]:
        """The ending of a request whose conversation does not end in a user's turn: the number of turns to keep, and
        the turns after them. Calls without a result get one that says so. With `prefill` the assistant's turn
        stays last, for the model to continue."""
        if self._open or self._waiting:
            keep = len(self.turns) - (self.turns[-1].role is Role.USER)
            last = self.turns[keep] if keep < len(self.turns) else Turn(role=Role.USER)
            results = [*last.results, *(_no_result(call) for call in self._open.values())]
            return keep, [Turn(role=Role.USER, results=results, parts=[*last.parts, *self._waiting])]
        if not self.turns or (self.turns[-1].role is Role.ASSISTANT and not prefill):
            return len(self.turns), [Turn(role=Role.USER, parts=[Text(text=GO_ON, origin=Origin.RUNTIME)])]
        return len(self.turns), []

    def _take(self, message: Message) -> None:
        match message.role:
            case Role.ASSISTANT:
                self._take_reply(message)
            case Role.TOOL:
                for part in message.parts:
                    self._take_result(part)
            case Role.USER:
                parts = list(self._kept(message.parts))
                if self._open:
                    self._waiting += parts
                elif parts:
                    self._last(Role.USER).parts += parts

    def _take_reply(self, message: Message) -> None:
        parts = list(self._kept(message.parts))
        if all(isinstance(part, Thinking) for part in parts):
            return
        self._close_calls()
        self._ask_for_reply()
        last = self._last(Role.ASSISTANT)
        for part in parts:
            last.parts.append(self._opened(part) if isinstance(part, ToolCall) else part)

    def _ask_for_reply(self) -> None:
        """Before a reply that nothing asked for stands what the request then ended with, where there was one: a
        message without words was answered."""
        if self.turns and self.turns[-1].role is Role.USER:
            return
        asked = bool(self.turns) or any(message.role is Role.USER for message in self._taken)
        words = GO_ON if asked else OPENING
        self._last(Role.USER).parts.append(Text(text=words, origin=Origin.RUNTIME))

    def _opened(self, call: ToolCall) -> ToolCall:
        """The call, waiting for its result under the id that it came with; an id that was used before becomes
        another one."""
        unique, number = call, len(self.call_ids)
        while unique.id in self.call_ids:
            unique, number = replace(call, id=f"{call.id[:52]}_{number}"), number + 1
        self._open[unique.id if call.id in self._open else call.id] = unique
        self.call_ids.add(unique.id)
        return unique

    def _take_result(self, part: Part) -> None:
        if not isinstance(part, ToolResult):
            self._waiting += self._kept((part,))
        elif (call := self._open.pop(part.call_id, None)) is not None:
            self._last(Role.USER).results.append(self._shown(replace(part, call_id=call.id, name=call.name)))
        else:
            words = f"(A result of {part.name} whose call is not shown:)\n{part.text}"
            self._waiting.append(Text(text=words, origin=Origin.TOOL))
        if not self._open:
            self._say_waiting()

    def _close_calls(self) -> None:
        if self._open:
            self._last(Role.USER).results += [_no_result(call) for call in self._open.values()]
            self._open = {}
        self._say_waiting()

    def _say_waiting(self) -> None:
        if self._waiting:
            self._last(Role.USER).parts += self._waiting
            self._waiting = []

    def _last(self, role: Role) -> Turn:
        """The last turn where it is of this role, otherwise a new one; it counts as changed."""
        if not self.turns or self.turns[-1].role is not role:
            self.turns.append(Turn(role=role))
        self.fresh = min(self.fresh, len(self.turns) - 1)
        return self.turns[-1]

    def _shown(self, result: ToolResult) -> ToolResult:
        parts = tuple(part for part in self._kept(result.parts) if isinstance(part, (Text, Image, File)))
        return replace(result, parts=parts)

    def _is_hidden(self, part: Image) -> bool:
        self._passed += self._sight.takes(part)
        return self._passed <= self._hidden and self._sight.takes(part)

    def _kept(self, parts: Sequence[Part]) -> Iterator[Part]:
        for part in parts:
            match part:
                case Text():
                    if part.text.strip():
                        yield part
                case Thinking():
                    if part.maker == self._maker and part.opaque not in self._refused:
                        yield part
                case Image() if self._is_hidden(part):
                    yield earlier(part)
                case Image() | File():
                    yield self._sight.shown(part)
                case ToolCall() if not self._rules.fits(part.name):
                    yield replace(part, name=wire_name(part.name, self._rules))
                case _:
                    yield part


def _no_result(call: ToolCall) -> ToolResult:
    reason = Text(text=NO_RESULT, origin=Origin.RUNTIME)
    return ToolResult(call_id=call.id, name=call.name, parts=(reason,), is_error=True)
