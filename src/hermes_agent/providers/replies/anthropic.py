"""Anthropic Messages: reading the streamed answer."""

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
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.TOOL_CALLS,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "refusal": StopReason.REFUSED,
}


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: dict[str, Any] | None = None


class _StopDetails(msgspec.Struct):
    category: str | None = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None


class _OutputDetails(msgspec.Struct):
    thinking_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _OutputDetails | None = None


class _Message(msgspec.Struct):
    usage: _Usage | None = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"")


_events = msgspec.json.Decoder(_Event)


@dataclass(slots=True)
class _Growing:
    """A content block while its pieces arrive. `pieces` are words, thoughts or JSON text, by what the block is."""

    block: _Block
    pieces: list[str] = field(default_factory=list)
    signature: str = ""


class MessagesDecoder:
    """Reads one streamed message."""

    def __init__(self, route: Route, errors: Table, taken: frozenset[str] | set[str]) -> None:
        self._route = route
        self._errors = errors
        self._ids = CallIds(taken)
        self._blocks: dict[int, _Growing] = {}
        self._stop = ""
        self._refusal = ""
        self._usage: _Usage | None = None
        self.content = 0
        self.done = False

    @property
    def words(self) -> str:
        texts = (growing for growing in self._blocks.values() if growing.block.type == "text")
        return "".join(piece for growing in texts for piece in growing.pieces)

    def feed(self, data: bytes) -> list[Delta]:
        try:
            event = _events.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._broken(f"sent a piece that is no event of the Messages API ({error}).") from error
        match event.type:
            case "content_block_delta":
                return self._grow(event.index, event.delta or _Delta())
            case "content_block_start":
                return self._start(event.index, event.content_block or _Block())
            case "message_start":
                self._take_usage(event.message.usage if event.message else None)
            case "message_delta":
                self._take_end(event.delta or _Delta(), event.usage)
            case "message_stop":
                self.done = True
            case "error":
                problem = reported(self._route, self._errors, read_detail(event.error))
                problem.partial = self.words
                raise problem
        return []

    def finish(self) -> Finished:
        if not self._stop and not self.done:
            raise self._broken("ended its stream in the middle of the answer.")
        stop = STOPS.get(self._stop, StopReason.OTHER)
        finished = Finished(parts=self._parts(), stop=stop, usage=self._tokens())
        return whole(self._route, Answer(finished=finished, refusal=self._refusal))

    def _start(self, index: int, block: _Block) -> list[Delta]:
        self.content += 1
        growing = _Growing(block, signature=block.signature)
        self._blocks[index] = growing
        match block.type:
            case "tool_use":
                return [CallDelta(name=block.name)]
            case "text" if block.text:
                growing.pieces.append(block.text)
                return [TextDelta(text=block.text)]
            case "thinking" if block.thinking:
                growing.pieces.append(block.thinking)
                return [ThinkingDelta(text=block.thinking)]
        return []

    def _grow(self, index: int, delta: _Delta) -> list[Delta]:
        growing = self._blocks.get(index)
        if growing is None:
            raise self._broken(f"sent a piece of block {index}, which never began.")
        self.content += 1
        match delta.type:
            case "text_delta":
                growing.pieces.append(delta.text)
                return [TextDelta(text=delta.text)] if delta.text else []
            case "input_json_delta":
                growing.pieces.append(delta.partial_json)
            case "thinking_delta":
                growing.pieces.append(delta.thinking)
                return [ThinkingDelta(text=delta.thinking)] if delta.thinking else []
            case "signature_delta":
                growing.signature += delta.signature
        return []

    def _take_end(self, delta: _Delta, usage: _Usage | None) -> None:
        self._stop = delta.stop_reason or self._stop
        if delta.stop_details is not None:
            self._refusal = delta.stop_details.category or ""
        self._take_usage(usage)

    def _take_usage(self, usage: _Usage | None) -> None:
        """The counts are cumulative: a later one replaces the earlier one, and what it leaves out stays."""
        if usage is None or self._usage is None:
            self._usage = usage or self._usage
            return
        for name in _Usage.__struct_fields__:
            value = getattr(usage, name)
            if value is not None:
                setattr(self._usage, name, value)

    def _parts(self) -> tuple[Text | Thinking | ToolCall, ...]:
        return tuple(part for growing in self._blocks.values() for part in (self._part(growing),) if part is not None)

    def _part(self, growing: _Growing) -> Text | Thinking | ToolCall | None:
        block, written = growing.block, "".join(growing.pieces)
        match block.type:
            case "text":
                return Text(text=written) if written else None
            case "thinking":
                return Thinking(text=written, opaque=growing.signature, maker=self._route.name)
            case "redacted_thinking":
                return Thinking(text="", opaque=block.data, maker=self._route.name, redacted=True)
            case "tool_use":
                arguments = written or (json_bytes(block.input).decode() if block.input else "")
                return tool_call(self._ids.give(block.id), block.name, arguments)
            case _:
                return None

    def _tokens(self) -> Usage:
        usage = self._usage
        if usage is None or usage.input_tokens is None or not self._stop:
            return Usage(known=False)
        read, made = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
        details = usage.output_tokens_details or _OutputDetails()
        return Usage(
            input=usage.input_tokens + read + made,
            output=usage.output_tokens or 0,
            cached=read,
            cache_write=made,
            reasoning=details.thinking_tokens or details.reasoning_tokens or 0,
        )

    def _broken(self, what: str) -> MalformedReply:
        return failure(self._route, MalformedReply, what, partial=self.words)
