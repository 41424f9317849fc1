"""Bedrock Converse: writing requests."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from hermes_agent.core.errors import (
    AuthRefused,
    ModelNotFound,
    Overloaded,
    RateLimited,
    ServerFailed,
    TimedOut,
)
from hermes_agent.core.messages import File, Image, Part, Text, Thinking, ToolCall, ToolResult
from hermes_agent.core.model import ModelRequest, Prefix, ToolSchema
from hermes_agent.providers.claude import thinking_fields
from hermes_agent.providers.conversation import ConversationCompiler
from hermes_agent.providers.dialect import Dialect, Table, Wire
from hermes_agent.providers.event_stream import EventStreamDecoder
from hermes_agent.providers.pieces import arguments_of, json_bytes, safe_id, written
from hermes_agent.providers.replies.bedrock import ConverseDecoder
from hermes_agent.providers.sight import PictureRules
from hermes_agent.providers.tool_schemas import ToolRules
from hermes_agent.providers.verifier import Turn

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
    """Writes Converse requests: system prompt and tools first, then the messages, what may change last.

    Four cache points, as many as there may be: after the system prompt, after the last tool, after the last user turn
    and after the one before it, which is where the last request ended.
    """

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


DIALECT = Dialect(
    errors=ERRORS, compiler=ConverseCompiler, reader=ConverseDecoder, framing=EventStreamDecoder, tools=RULES
)
