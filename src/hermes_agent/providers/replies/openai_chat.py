"""OpenAI chat completions: reading the streamed answer."""

from __future__ import annotations

from typing import Any

import msgspec

from hermes_agent.core.model import Delta, StopReason, Usage
from hermes_agent.providers.dialect import Table, Taken
from hermes_agent.providers.pieces import json_bytes
from hermes_agent.providers.replies.reading import Block, ReplyReader
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


class ChatDecoder(ReplyReader[_Chunk]):
    """Reads one streamed chat completion."""

    _parse = msgspec.json.Decoder(_Chunk).decode
    _event_name = "chat completion"

    def __init__(self, route: Route, errors: Table, taken: Taken) -> None:
        super().__init__(route, errors, taken)
        self._thought, self._text = Block("thinking"), Block("text")
        self._blocks = {"thinking": self._thought, "text": self._text}
        self._calls: list[tuple[int, Block]] = []  # with their `index`
        self._details: list[dict[str, Any]] = []
        self._reason = ""
        self._usage: _Usage | None = None

    def feed(self, data: bytes) -> list[Delta]:
        if data.startswith(END_MARK):
            self.done = True
            return []
        chunk = self._read(data)
        if chunk.error and bytes(chunk.error) != b"null":
            raise self._failed(chunk.error)
        if chunk.usage is not None:
            self._usage = chunk.usage
        deltas: list[Delta] = []
        for choice in chunk.choices or ():
            if choice.finish_reason:
                self._reason = choice.finish_reason
            if choice.delta is not None:
                self._take(choice.delta, deltas)
        return deltas

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
            deltas += self._thought.grow(thought)
        if words:
            self.content += 1
            deltas += self._text.grow(words)
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
            deltas.append(self._called(call.name))
        if isinstance(function.arguments, dict):
            call.grow(json_bytes(function.arguments).decode())
        elif function.arguments:
            call.grow(function.arguments)

    def _call_of(self, piece: _Call) -> Block:
        """The call that a piece belongs to. Some servers leave out `index`, or give every call the index 0 and its
        own id."""
        named = piece.function is not None and bool(piece.function.name)
        for index, call in reversed(self._calls):
            same_place = piece.index is None or index == piece.index
            another = named and bool(call.name) and bool(piece.id) and piece.id != call.id
            if same_place and not another and not (piece.index is None and named):
                return call
        number = len(self._calls)
        call = self._blocks[number] = Block("call")
        self._calls.append((number if piece.index is None else piece.index, call))
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

    def _ended(self) -> bool:
        return bool(self._reason) or self.done

    def _close(self) -> StopReason:
        stop = STOPS.get(self._reason, StopReason.OTHER if self._reason else StopReason.END)
        if self._calls and stop is StopReason.END:
            stop = StopReason.TOOL_CALLS
        if self._details:
            self._thought.opaque = json_bytes(self._details).decode()
        if self._refusal and not self._text.pieces:
            self._text.grow(self._refusal)
            stop = StopReason.REFUSED
        return stop

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


def _readable(entry: dict[str, Any]) -> str:
    """The words of one reasoning detail; encrypted ones have none."""
    words = entry.get("text") or entry.get("summary")
    return words if isinstance(words, str) else ""
