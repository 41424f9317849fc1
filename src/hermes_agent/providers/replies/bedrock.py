"""Bedrock Converse: reading the streamed answer."""

from __future__ import annotations

from typing import Literal

import msgspec

from hermes_agent.core.model import Delta, StopReason, Usage
from hermes_agent.providers.dialect import Table, Taken
from hermes_agent.providers.replies.reading import Block, ReplyReader
from hermes_agent.providers.route import Route

STOPS = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.TOOL_CALLS,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "content_filtered": StopReason.REFUSED,
    "guardrail_intervened": StopReason.REFUSED,
}
# The model wrote something that the service itself could not read: another attempt may end better.
BROKEN = {
    "malformed_model_output": "wrote an answer that cannot be read",
    "malformed_tool_use": "wrote a tool call that cannot be read",
}
INVALID = 400


class _CallStart(msgspec.Struct, rename="camel"):
    tool_use_id: str = ""
    name: str = ""


class _Begun(msgspec.Struct, rename="camel"):
    tool_use: _CallStart | None = None


class _Input(msgspec.Struct):
    input: str = ""


class _Reasoning(msgspec.Struct, rename="camel"):
    text: str = ""
    signature: str = ""
    redacted_content: str = ""


class _Piece(msgspec.Struct, rename="camel"):
    text: str | None = None
    tool_use: _Input | None = None
    reasoning_content: _Reasoning | None = None


class _Start(msgspec.Struct, rename="camel"):
    content_block_index: int = 0
    start: _Begun | None = None


class _Delta(msgspec.Struct, rename="camel"):
    content_block_index: int = 0
    delta: _Piece | None = None


class _Stop(msgspec.Struct, rename="camel"):
    stop_reason: str = ""


class _Usage(msgspec.Struct, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_write_input_tokens: int = 0


class _Metadata(msgspec.Struct):
    usage: _Usage | None = None


class _Problem(msgspec.Struct):
    """An exception; `of` is its payload."""

    type: str = ""
    message: str = ""
    of: _Problem | None = None


class _Event(msgspec.Struct, rename="camel"):
    content_block_start: _Start | None = None
    content_block_delta: _Delta | None = None
    message_stop: _Stop | None = None
    metadata: _Metadata | None = None
    error: _Problem | None = None


class ConverseDecoder(ReplyReader[_Event]):
    """Reads one streamed message; events that it does not know are passed over."""

    _parse = msgspec.json.Decoder(_Event).decode
    _event_name = "event of the Converse API"

    def __init__(self, route: Route, errors: Table, taken: Taken) -> None:
        super().__init__(route, errors, taken)
        self._stop = ""
        self._usage: _Usage | None = None

    def feed(self, data: bytes) -> list[Delta]:
        event = self._read(data)
        if event.content_block_delta is not None:
            return self._grow(event.content_block_delta)
        if event.content_block_start is not None:
            return self._start(event.content_block_start)
        if event.error is not None:
            message = event.error.message or (event.error.of.message if event.error.of else "")
            status = {"code": INVALID} if event.error.type == "ValidationException" else {}
            raise self._failed(msgspec.json.encode({"type": event.error.type, "message": message, **status}))
        if event.message_stop is not None:
            self._stop = event.message_stop.stop_reason or "end_turn"
        if event.metadata is not None:
            self._usage = event.metadata.usage
            self.done = bool(self._stop)
        return []

    def _start(self, begun: _Start) -> list[Delta]:
        call = begun.start.tool_use if begun.start is not None else None
        if call is None:
            return []
        self.content += 1
        self._blocks[begun.content_block_index] = Block("call", id=call.tool_use_id, name=call.name)
        return [self._called(call.name)]

    def _grow(self, grown: _Delta) -> list[Delta]:
        piece = grown.delta or _Piece()
        self.content += 1
        if piece.text is not None:
            return self._block(grown.content_block_index, "text").grow(piece.text)
        if piece.tool_use is not None:
            block = self._blocks.get(grown.content_block_index)
            if block is None or block.kind != "call":
                raise self._broken(f"sent arguments of block {grown.content_block_index}, which is no call.")
            return block.grow(piece.tool_use.input)
        if piece.reasoning_content is not None:
            return self._think(self._block(grown.content_block_index, "thinking"), piece.reasoning_content)
        return []

    def _think(self, block: Block, thought: _Reasoning) -> list[Delta]:
        block.opaque += thought.signature + thought.redacted_content
        block.redacted = block.redacted or bool(thought.redacted_content)
        return block.grow(thought.text)

    def _block(self, index: int, kind: Literal["text", "thinking"]) -> Block:
        """The block at this index; words and thoughts begin with their first piece."""
        block = self._blocks.get(index)
        if block is None:
            block = self._blocks[index] = Block(kind)
        return block

    def _ended(self) -> bool:
        return bool(self._stop)

    def _close(self) -> StopReason:
        if self._stop in BROKEN:
            raise self._broken(f"{BROKEN[self._stop]}.")
        self._refusal = self._stop
        return STOPS.get(self._stop, StopReason.OTHER)

    def _tokens(self) -> Usage:
        usage = self._usage
        if usage is None:
            return Usage(known=False)
        read, made = usage.cache_read_input_tokens, usage.cache_write_input_tokens
        return Usage(input=usage.input_tokens + read + made, output=usage.output_tokens, cached=read, cache_write=made)
