"""Dialect of Anthropic Messages: writes requests, reads streamed answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hermes_agent.core.errors import (
    AuthRefused,
    ModelNotFound,
    OutOfCredit,
    Overloaded,
    PayloadTooLarge,
    RateLimited,
    ServerFailed,
    TimedOut,
)
from hermes_agent.core.messages import (
    Delta,
    File,
    Image,
    ModelRequest,
    Part,
    Prefix,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from hermes_agent.providers.dialect import ConversationCompiler, Dialect, thinking_fields
from hermes_agent.providers.outcomes import Table, Taken
from hermes_agent.providers.reading import Block, ReplyReader, TokenDetails, arguments_of, json_bytes, safe_id, written
from hermes_agent.providers.route import Route
from hermes_agent.providers.tool_schemas import ToolRules
from hermes_agent.providers.verifier import MEGABYTE, PictureRules, Turn

API_VERSION = "2023-06-01"
CACHES = {"5m": {"type": "ephemeral"}, "1h": {"type": "ephemeral", "ttl": "1h"}}
CACHE_MARKS = {ttl: b',"cache_control":' + json_bytes(mark) for ttl, mark in CACHES.items()}
END_OF_TURN = b"}]}"
RULES = ToolRules(longest_name=128)
# https://docs.anthropic.com/en/docs/build-with-claude/vision#general-limits; with more than 20, large ones are refused
PICTURES = PictureRules(largest=5 * MEGABYTE, most=100)

ERRORS: Table = {
    "api_error": ServerFailed,
    "authentication_error": AuthRefused,
    "billing_error": OutOfCredit,
    "not_found_error": ModelNotFound,
    "overloaded_error": Overloaded,
    "permission_error": AuthRefused,
    "rate_limit_error": RateLimited,
    "request_too_large": PayloadTooLarge,
    "timeout_error": TimedOut,
}


class MessagesCompiler(ConversationCompiler):
    """Writes Messages requests. Four cache marks, as many as the API allows: on the system prompt, on the last tool, on
    the last user turn and on the one before it, which is where the last request ended."""

    rules = RULES
    pictures = PICTURES

    def _shown(self, fragments: list[bytes]) -> list[bytes]:
        fragments = fragments.copy()
        for place in (-2, -4) if self._prefill else (-1, -3):
            if len(fragments) >= -place:
                fragments[place] = _marked(fragments[place], CACHE_MARKS[self._route.cache_ttl])
        return fragments

    def _path(self) -> str:
        return "/v1/messages"

    def _headers(self, body: bytes) -> dict[str, str]:  # noqa: ARG002 - see the base
        return {"anthropic-version": API_VERSION, **self._route.key_header("x-api-key")}

    def _head(self, prefix: Prefix) -> bytes:
        head: dict[str, Any] = {"model": self._route.model}
        if prefix.system.strip():
            head["system"] = [{"type": "text", "text": prefix.system, "cache_control": CACHES[self._route.cache_ttl]}]
        if self.has_tools(prefix):
            tools: list[dict[str, Any]] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in prefix.tools
            ]
            tools[-1]["cache_control"] = CACHES[self._route.cache_ttl]
            head["tools"] = tools
        return json_bytes(head)[:-1] + b',"messages":['

    def _turn(self, turn: Turn) -> bytes:
        """Its last block ends the fragment, so that a cache mark can be put there."""
        content = [_result(result) for result in turn.results]
        content += (block for part in turn.parts for block in _blocks(part))
        return json_bytes({"role": turn.role.value, "content": content})

    def _tail(self, request: ModelRequest, max_output: int | None) -> dict[str, Any]:
        has_tools = self.has_tools(request.prefix)
        limit = self.longest(max_output)
        tail: dict[str, Any] = {"stream": True, "max_tokens": limit}
        if has_tools and not request.use_tools:
            tail["tool_choice"] = {"type": "none"}
        level = self._route.effort(request.effort, tools=has_tools)
        if level is not None and not request.prefill:  # a reply that has begun cannot think first
            tail.update(thinking_fields(self._route.facts, level, limit, self.turns))
        return tail


def _marked(fragment: bytes, mark: bytes) -> bytes:
    return fragment[: -len(END_OF_TURN)] + mark + END_OF_TURN if fragment.endswith(END_OF_TURN) else fragment


def _result(result: ToolResult) -> dict[str, Any]:
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": safe_id(result.call_id),
        "content": [block for part in result.parts for block in _blocks(part)],
    }
    if result.is_error:
        block["is_error"] = True
        block["content"] = block["content"] or [{"type": "text", "text": "Error"}]
    return block


def _blocks(part: Part) -> Iterator[dict[str, Any]]:
    match part:
        case Text():
            yield {"type": "text", "text": part.text}
        case Thinking(opaque="") | ToolResult():
            return
        case Thinking(redacted=True):
            yield {"type": "redacted_thinking", "data": part.opaque}
        case Thinking():
            yield {"type": "thinking", "thinking": part.text, "signature": part.opaque}
        case Image(url=""):
            yield {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}
        case Image():
            yield {"type": "image", "source": {"type": "url", "url": part.url}}
        case File():
            yield _document(part)
        case ToolCall():
            yield {"type": "tool_use", "id": safe_id(part.id), "name": part.name, "input": arguments_of(part)}


def _document(part: File) -> dict[str, Any]:
    words = written(part)
    if words is not None:
        return {"type": "text", "text": words}
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": "document", "title": part.name, "source": source}


STOPS = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.TOOL_CALLS,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "refusal": StopReason.REFUSED,
}


class _Piece(msgspec.Struct):
    """A block as it begins, or what is added to one, or how the reply ends."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: dict[str, Any] | None = None
    partial_json: str = ""
    stop_reason: str | None = None
    stop_details: dict[str, Any] | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: TokenDetails | None = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int = 0
    delta: _Piece | None = None
    content_block: _Piece | None = None
    message: _Event | None = None
    usage: _Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"")


class MessagesDecoder(ReplyReader[_Event]):
    """Decodes one streamed reply of the Messages API."""

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
                return self._grow(event.index, event.delta or _Piece())
            case "content_block_start":
                return self._start(event.index, event.content_block or _Piece())
            case "message_start":
                self._take_usage(event.message.usage if event.message else None)
            case "message_delta":
                self._take_end(event.delta or _Piece(), event.usage)
            case "message_stop":
                self.done = True
            case "error":
                raise self._failed(event.error)
        return []

    def _start(self, index: int, given: _Piece) -> list[Delta]:
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

    def _grow(self, index: int, delta: _Piece) -> list[Delta]:
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

    def _take_end(self, delta: _Piece, usage: _Usage | None) -> None:
        self._stop = delta.stop_reason or self._stop
        if delta.stop_details is not None:
            self._refusal = str(delta.stop_details.get("category") or "")
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
        details = usage.output_tokens_details or TokenDetails()
        return Usage(
            input=usage.input_tokens + read + made,
            output=usage.output_tokens or 0,
            cached=read,
            cache_write=made,
            reasoning=details.thinking_tokens or details.reasoning_tokens or 0,
        )


DIALECT = Dialect(errors=ERRORS, compiler=MessagesCompiler, reader=MessagesDecoder, tools=RULES)
