"""OpenAI chat completions: reading the streamed answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from hermes_agent.core.errors import MalformedReply
from hermes_agent.core.messages import Text, Thinking, ToolCall
from hermes_agent.core.model import CallDelta, Delta, StopReason, TextDelta, ThinkingDelta, Usage
from hermes_agent.providers.dialect import Finished, Table
from hermes_agent.providers.outcomes import failure, read_detail, reported
from hermes_agent.providers.pieces import Answer, CallIds, json_bytes, tool_call, whole
from hermes_agent.providers.route import Route

STOPS = {
    "stop": StopReason.END,
    "end_turn": StopReason.END,
    "tool_calls": StopReason.TOOL_CALLS,
    "function_call": StopReason.TOOL_CALLS,
    "length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSED,
}
END_MARK = b"[DONE]"
JOINED = frozenset({"text", "summary", "data"})


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Piece(msgspec.Struct):
    """A part of a content that is a list: words, or (Mistral) thinking with parts of its own."""

    text: str = ""
    thinking: list[_Piece] = []


class _Delta(msgspec.Struct):
    content: str | list[_Piece] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    cost: float | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"")


_chunks = msgspec.json.Decoder(_Chunk)


@dataclass(slots=True)
class _Growing:
    """A tool call while its pieces arrive."""

    index: int
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ChatDecoder:
    """Reads one streamed chat completion."""

    def __init__(self, route: Route, errors: Table, taken: frozenset[str] | set[str]) -> None:
        self._route = route
        self._errors = errors
        self._ids = CallIds(taken)
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._details: list[dict[str, Any]] = []
        self._calls: list[_Growing] = []
        self._finish = ""
        self._refusal = ""
        self._usage: _Usage | None = None
        self.content = 0
        self.done = False

    @property
    def words(self) -> str:
        return "".join(self._text)

    def feed(self, data: bytes) -> list[Delta]:
        if data.startswith(END_MARK):
            self.done = True
            return []
        try:
            chunk = _chunks.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._broken(f"sent a piece that is no chat completion ({error}).") from error
        if chunk.error and bytes(chunk.error) != b"null":
            problem = reported(self._route, self._errors, read_detail(chunk.error))
            problem.partial = self.words
            raise problem
        if chunk.usage is not None:
            self._usage = chunk.usage
        deltas: list[Delta] = []
        for choice in chunk.choices or ():
            if choice.finish_reason:
                self._finish = choice.finish_reason
            if choice.delta is not None:
                self._take(choice.delta, deltas)
        return deltas

    def finish(self) -> Finished:
        if not self._finish and not self.done:
            raise self._broken("ended its stream in the middle of the answer.")
        stop = STOPS.get(self._finish, StopReason.OTHER if self._finish else StopReason.END)
        if self._calls and stop is StopReason.END:
            stop = StopReason.TOOL_CALLS
        if self._refusal and not self._text:
            stop = StopReason.REFUSED
        finished = Finished(parts=self._parts(), stop=stop, usage=self._tokens(), cost=self._cost())
        return whole(self._route, Answer(finished=finished, refusal=self._refusal))

    def _take(self, delta: _Delta, deltas: list[Delta]) -> None:
        words = delta.content
        thought = delta.reasoning or delta.reasoning_content
        if isinstance(words, list):
            thought = thought or "".join(inner.text for piece in words for inner in piece.thinking)
            words = "".join(piece.text for piece in words)
        if delta.reasoning_details:
            self._add_details(delta.reasoning_details)
            thought = thought or "".join(_readable(entry) for entry in delta.reasoning_details)
        if thought:
            self.content += 1
            self._thoughts.append(thought)
            deltas.append(ThinkingDelta(text=thought))
        if words:
            self.content += 1
            self._text.append(words)
            deltas.append(TextDelta(text=words))
        if delta.refusal:
            self.content += 1
            self._refusal += delta.refusal
        for piece in delta.tool_calls or ():
            self._take_call(piece, deltas)

    def _take_call(self, piece: _Call, deltas: list[Delta]) -> None:
        self.content += 1
        call = self._call_of(piece)
        function = piece.function or _Function()
        if piece.id and not call.id:
            call.id = piece.id
        if function.name and not call.name:
            call.name = function.name
            deltas.append(CallDelta(name=call.name))
        if isinstance(function.arguments, dict):
            call.arguments.append(json_bytes(function.arguments).decode())
        elif function.arguments:
            call.arguments.append(function.arguments)

    def _call_of(self, piece: _Call) -> _Growing:
        """The call that a piece belongs to. Some servers leave out `index`, or give every call the index 0 and its
        own id."""
        named = piece.function is not None and bool(piece.function.name)
        for call in reversed(self._calls):
            same_place = piece.index is None or call.index == piece.index
            another = named and bool(call.name) and bool(piece.id) and piece.id != call.id
            if same_place and not another and not (piece.index is None and named):
                return call
        call = _Growing(index=len(self._calls) if piece.index is None else piece.index)
        self._calls.append(call)
        return call

    def _add_details(self, entries: list[dict[str, Any]]) -> None:
        """Join the pieces of reasoning details: they must go back as whole blocks, in their order."""
        for entry in entries:
            last = self._details[-1] if self._details else None
            same = last is not None and all(last.get(key) == entry.get(key) for key in ("type", "index"))
            if last is None or not same:
                self._details.append(dict(entry))
                continue
            for key, value in entry.items():
                if key in JOINED and isinstance(value, str) and isinstance(last.get(key), str):
                    last[key] += value
                elif value is not None:
                    last[key] = value

    def _parts(self) -> tuple[Text | Thinking | ToolCall, ...]:
        parts: list[Text | Thinking | ToolCall] = []
        if self._thoughts or self._details:
            opaque = json_bytes(self._details).decode() if self._details else ""
            parts.append(Thinking(text="".join(self._thoughts), opaque=opaque, maker=self._route.name))
        words = self.words or self._refusal
        if words:
            parts.append(Text(text=words))
        parts += (tool_call(self._ids.give(call.id), call.name, "".join(call.arguments)) for call in self._calls)
        return tuple(parts)

    def _tokens(self) -> Usage:
        usage = self._usage
        if usage is None or usage.prompt_tokens is None:
            return Usage(known=False)
        before = usage.prompt_tokens_details or _InputDetails()
        after = usage.completion_tokens_details or _OutputDetails()
        return Usage(
            input=usage.prompt_tokens,
            output=usage.completion_tokens or 0,
            cached=before.cached_tokens or usage.prompt_cache_hit_tokens or 0,
            cache_write=before.cache_write_tokens or 0,
            reasoning=after.reasoning_tokens or 0,
        )

    def _cost(self) -> float | None:
        if self._usage is None or not self._route.vendor.quirks.reports_cost:
            return None
        return self._usage.cost

    def _broken(self, what: str) -> MalformedReply:
        return failure(self._route, MalformedReply, what, partial=self.words)


def _readable(entry: dict[str, Any]) -> str:
    """The words of one reasoning detail; encrypted ones have none."""
    words = entry.get("text") or entry.get("summary")
    return words if isinstance(words, str) else ""
