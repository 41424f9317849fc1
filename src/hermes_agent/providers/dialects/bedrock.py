"""Dialect of Amazon Bedrock Converse: writes requests, reads streamed answers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from hermes_agent.core.errors import AuthRefused, ModelNotFound, Overloaded, RateLimited, ServerFailed, TimedOut
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
    ToolSchema,
    Usage,
)
from hermes_agent.providers.dialect import ConversationCompiler, Dialect, thinking_fields
from hermes_agent.providers.event_stream import EventStreamDecoder
from hermes_agent.providers.outcomes import Table, Taken, Wire
from hermes_agent.providers.reading import Block, ReplyReader, arguments_of, json_bytes, safe_id, written
from hermes_agent.providers.route import Route
from hermes_agent.providers.tool_schemas import ToolRules
from hermes_agent.providers.verifier import PictureRules, Turn

ERRORS: Table = {
    "AccessDeniedException": AuthRefused,
    "ExpiredTokenException": AuthRefused,
    "IncompleteSignatureException": AuthRefused,
    "InternalServerException": ServerFailed,
    "InvalidSignatureException": AuthRefused,
    "MissingAuthenticationTokenException": AuthRefused,
    "ModelErrorException": ServerFailed,
    "ModelNotReadyException": Overloaded,
    "ModelStreamErrorException": ServerFailed,
    "ModelTimeoutException": TimedOut,
    "ResourceNotFoundException": ModelNotFound,
    "ServiceQuotaExceededException": RateLimited,
    "ServiceUnavailableException": Overloaded,
    "ThrottlingException": RateLimited,
    "UnrecognizedClientException": AuthRefused,
}
# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CachePointBlock.html
CACHE_POINTS = {"5m": {"cachePoint": {"type": "default"}}, "1h": {"cachePoint": {"type": "default", "ttl": "1h"}}}
CACHE_MARKS = {ttl: b"," + json_bytes(point) for ttl, point in CACHE_POINTS.items()}
END_OF_TURN = b"]}"
# Converse has no tool choice "none", and wants the tools named as long as the conversation has calls.
NO_TOOLS = b',{"text":"(No tool may be called now: answer in words.)"}'
DOCUMENTS = {
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
RULES = ToolRules(described=True)
# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html
PICTURES = PictureRules(largest=3_750_000, most=20)
_NAME = re.compile(r"[^A-Za-z0-9()\[\]]+")
LONGEST_NAME = 150


class ConverseCompiler(ConversationCompiler):
    """Writes Converse requests: system prompt and tools first, then the messages, changing fields last. Four cache
    points, the maximum: after the system prompt, after the last tool, after the last user turn and after the one before
    it, which is where the last request ended."""

    rules = RULES
    pictures = PICTURES

    def write(self, request: ModelRequest, max_output: int | None) -> Wire:
        self._forbidden = self.has_tools(request.prefix) and not request.use_tools
        return super().write(request, max_output)

    def _shown(self, fragments: list[bytes]) -> list[bytes]:
        fragments = fragments.copy()
        if self._route.facts.cache_marks:
            for place in (-1, -3):
                if len(fragments) >= -place:
                    fragments[place] = _with(CACHE_MARKS[self._route.cache_ttl], fragments[place])
        if self._forbidden:
            fragments[-1] = _with(NO_TOOLS, fragments[-1])
        return fragments

    def _path(self) -> str:
        return f"/model/{quote(self._route.model, safe='')}/converse-stream"

    def _head(self, prefix: Prefix) -> bytes:
        marks = [CACHE_POINTS[self._route.cache_ttl]] if self._route.facts.cache_marks else []
        head: dict[str, Any] = {}
        if prefix.system.strip():
            head["system"] = [{"text": prefix.system}, *marks]
        if self.has_tools(prefix):
            head["toolConfig"] = {"tools": [*({"toolSpec": _tool(tool)} for tool in prefix.tools), *marks]}
        return json_bytes(head)[:-1] + (b',"messages":[' if head else b'"messages":[')

    def _turn(self, turn: Turn) -> bytes:
        content = [_result(result) for result in turn.results]
        content += (block for part in turn.parts for block in _blocks(part))
        if any("document" in block for block in content) and not any("text" in block for block in content):
            content.append({"text": "(See the document.)"})  # a document is refused without words
        return json_bytes({"role": turn.role.value, "content": content or [{"text": "..."}]})

    def _tail(self, request: ModelRequest, max_output: int | None) -> dict[str, Any]:
        facts = self._route.facts
        tail: dict[str, Any] = {}
        level = self._route.effort(request.effort, tools=self.has_tools(request.prefix))
        # Without a number the service takes the model's own limit; thinking wants to be told the room that it has.
        if max_output is None and facts.output is None and level is None:
            return tail
        limit = self.longest(max_output)
        tail["inferenceConfig"] = {"maxTokens": limit}
        fields = {} if level is None else thinking_fields(facts, level, limit, self.turns)
        if fields:
            tail["additionalModelRequestFields"] = fields
        return tail


def _with(mark: bytes, fragment: bytes) -> bytes:
    return fragment[: -len(END_OF_TURN)] + mark + END_OF_TURN


def _tool(tool: ToolSchema) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.parameters}}


def _result(result: ToolResult) -> dict[str, Any]:
    content = [block for part in result.parts for block in _blocks(part)]
    answered: dict[str, Any] = {
        "toolUseId": safe_id(result.call_id),
        "content": content or [{"text": "Error" if result.is_error else "(nothing)"}],
    }
    if result.is_error:
        answered["status"] = "error"
    return {"toolResult": answered}


def _blocks(part: Part) -> Iterator[dict[str, Any]]:
    match part:
        case Text():
            yield {"text": part.text}
        case Thinking(opaque="") | ToolResult():
            return
        case Thinking(redacted=True):
            yield {"reasoningContent": {"redactedContent": part.opaque}}
        case Thinking():
            yield {"reasoningContent": {"reasoningText": {"text": part.text, "signature": part.opaque}}}
        case Image():
            yield _picture(part)
        case File():
            yield _document(part)
        case ToolCall():
            yield {"toolUse": {"toolUseId": safe_id(part.id), "name": part.name, "input": arguments_of(part)}}


def _picture(part: Image) -> dict[str, Any]:
    if part.url:
        return {"text": f"[A picture at {part.url}, which cannot be fetched for this model.]"}
    kind = part.media_type.removeprefix("image/")
    return {"image": {"format": kind, "source": {"bytes": part.data}}}


def _document(part: File) -> dict[str, Any]:
    words = written(part)
    if words is not None:
        return {"text": words}
    kind = DOCUMENTS.get(part.media_type)
    if kind is None:
        return {"text": f"[The file {part.name} ({part.media_type}), of a kind that this model cannot read.]"}
    return {"document": {"format": kind, "name": _document_name(part), "source": {"bytes": part.data}}}


def _document_name(part: File) -> str:
    """The name in the letters that are allowed, and something that tells two documents of one name apart."""
    digest = hashlib.sha256(part.data.encode()).hexdigest()[:8]
    return f"{_NAME.sub(' ', part.name).strip()[:LONGEST_NAME]} {digest}".strip()


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


class _Piece(msgspec.Struct, rename="camel"):
    """A block as it begins (`start`), what is added to one (`delta`), and what is in those: words, a call, thought."""

    content_block_index: int = 0
    start: _Piece | None = None
    delta: _Piece | None = None
    text: str | None = None
    tool_use: _Piece | None = None
    tool_use_id: str = ""
    name: str = ""
    input: str = ""
    reasoning_content: _Piece | None = None
    signature: str = ""
    redacted_content: str = ""


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
    """An exception event; `of` is its payload."""

    type: str = ""
    message: str = ""
    of: _Problem | None = None


class _Event(msgspec.Struct, rename="camel"):
    content_block_start: _Piece | None = None
    content_block_delta: _Piece | None = None
    message_stop: _Stop | None = None
    metadata: _Metadata | None = None
    error: _Problem | None = None


class ConverseDecoder(ReplyReader[_Event]):
    """Decodes one streamed reply of the Converse API; ignores unknown events."""

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

    def _start(self, begun: _Piece) -> list[Delta]:
        call = begun.start.tool_use if begun.start is not None else None
        if call is None:
            return []
        self.content += 1
        self._blocks[begun.content_block_index] = Block("call", id=call.tool_use_id, name=call.name)
        return [self._called(call.name)]

    def _grow(self, grown: _Piece) -> list[Delta]:
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

    def _think(self, block: Block, thought: _Piece) -> list[Delta]:
        block.opaque += thought.signature + thought.redacted_content
        block.redacted = block.redacted or bool(thought.redacted_content)
        return block.grow(thought.text or "")

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


DIALECT = Dialect(
    errors=ERRORS, compiler=ConverseCompiler, reader=ConverseDecoder, framing=EventStreamDecoder, tools=RULES
)
