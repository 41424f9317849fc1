"""Anthropic Messages: reading the streamed answer."""

from __future__ import annotations

from typing import Any

import msgspec

from hermes_agent.core.model import Delta, StopReason, Usage
from hermes_agent.providers.dialect import Table, Taken
from hermes_agent.providers.pieces import json_bytes
from hermes_agent.providers.replies.reading import Block, ReplyReader
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


class MessagesDecoder(ReplyReader[_Event]):
    """Reads one streamed message."""

    _parse = msgspec.json.Decoder(_Event).decode
    _event_name = "event of the Messages API"

    def __init__(self, route: Route, errors: Table, taken: Taken) -> None:
        super().__init__(route, errors, taken)
        self._given: dict[int, str] = {}  # arguments that came whole with their block's beginning
        self._stop = ""
        self._usage: _Usage | None = None

    def feed(self, data: bytes) -> list[Delta]:
        event = self._read(data)
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
                raise self._failed(event.error)
        return []

    def _start(self, index: int, given: _Block) -> list[Delta]:
        self.content += 1
        match given.type:
            case "text":
                block = self._blocks[index] = Block("text")
                return block.grow(given.text)
            case "thinking":
                block = self._blocks[index] = Block("thinking", opaque=given.signature)
                return block.grow(given.thinking)
            case "redacted_thinking":
                self._blocks[index] = Block("thinking", opaque=given.data, redacted=True)
            case "tool_use":
                self._blocks[index] = Block("call", id=given.id, name=given.name)
                if given.input:
                    self._given[index] = json_bytes(given.input).decode()
                return [self._called(given.name)]
            case _:
                self._blocks[index] = Block("")
        return []

    def _grow(self, index: int, delta: _Delta) -> list[Delta]:
        block = self._blocks.get(index)
        if block is None:
            raise self._broken(f"sent a piece of block {index}, which never began.")
        self.content += 1
        match delta.type:
            case "text_delta":
                return block.grow(delta.text)
            case "input_json_delta":
                return block.grow(delta.partial_json)
            case "thinking_delta":
                return block.grow(delta.thinking)
            case "signature_delta":
                block.opaque += delta.signature
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

    def _ended(self) -> bool:
        return bool(self._stop) or self.done

    def _close(self) -> StopReason:
        for index, arguments in self._given.items():
            block = self._blocks[index]
            block.pieces = block.pieces or [arguments]
        return STOPS.get(self._stop, StopReason.OTHER)

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
