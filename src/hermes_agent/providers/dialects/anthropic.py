"""Anthropic Messages: writing requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
from hermes_agent.core.messages import File, Image, Part, Text, Thinking, ToolCall, ToolResult
from hermes_agent.core.model import ModelRequest, Prefix
from hermes_agent.providers.claude import thinking_fields
from hermes_agent.providers.conversation import ConversationCompiler
from hermes_agent.providers.dialect import Dialect, Table
from hermes_agent.providers.pieces import arguments_of, json_bytes, safe_id, written
from hermes_agent.providers.replies.anthropic import MessagesDecoder
from hermes_agent.providers.sight import MEGABYTE, PictureRules
from hermes_agent.providers.tool_schemas import ToolRules
from hermes_agent.providers.verifier import Turn

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
    """Writes Messages requests.

    Four cache marks, as many as the API allows: on the system prompt, on the last tool, on the last user turn and on
    the one before it, which is where the last request ended.
    """

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


DIALECT = Dialect(errors=ERRORS, compiler=MessagesCompiler, reader=MessagesDecoder, tools=RULES)
