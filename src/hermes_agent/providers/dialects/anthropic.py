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
from hermes_agent.core.messages import File, Image, Part, Role, Text, Thinking, ToolCall, ToolResult
from hermes_agent.core.model import ModelRequest, Prefix
from hermes_agent.providers.dialect import Compiler, Decoder, Dialect, Framing, Table, Wire
from hermes_agent.providers.kept import KeptTurns, joined
from hermes_agent.providers.pieces import BYTES_PER_TOKEN, arguments_of, json_bytes, safe_id, written
from hermes_agent.providers.replies.anthropic import MessagesDecoder
from hermes_agent.providers.route import Route, output_limit
from hermes_agent.providers.sse import SseDecoder
from hermes_agent.providers.vendor import Level
from hermes_agent.providers.verifier import Turn

API_VERSION = "2023-06-01"
CACHE = {"type": "ephemeral"}
CACHE_MARK = b',"cache_control":{"type":"ephemeral"}'
END_OF_TURN = b"}]}"
# Tokens of reasoning for the models that take a number instead of a level; 1,024 is the least that the API takes.
BUDGETS: dict[Level, int] = {
    "minimal": 1_024,
    "low": 4_096,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 32_768,
}
LEAST_BUDGET = 1_024
LEAST_ROOM = 1_024

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


class Anthropic:
    """The dialect `anthropic`."""

    errors = ERRORS

    def compiler(self, route: Route) -> Compiler:
        return MessagesCompiler(route)

    def framing(self) -> Framing:
        return SseDecoder()

    def decoder(self, route: Route, taken: frozenset[str] | set[str]) -> Decoder:
        return MessagesDecoder(route, ERRORS, taken)


class MessagesCompiler:
    """Writes Messages requests.

    Four cache marks, as many as the API allows: on the system prompt, on the last tool, on the last user turn and on
    the one before it, which is where the last request ended.
    """

    def __init__(self, route: Route) -> None:
        self._route = route
        self._turns = KeptTurns(route, _turn)
        self._prefix: Prefix | None = None
        self._head = b""
        self._fragments: list[bytes] = []
        self.tokens = 0

    @property
    def call_ids(self) -> set[str]:
        return self._turns.call_ids

    def take(self, request: ModelRequest) -> None:
        if self._prefix is not request.prefix:
            self._head = self._write_head(request.prefix)
            self._prefix = request.prefix
        self._fragments, tokens = self._turns.follow(request.messages)
        self.tokens = tokens + len(self._head) // BYTES_PER_TOKEN

    def write(self, request: ModelRequest, max_output: int | None) -> Wire:
        fragments = self._fragments.copy()
        for place in (-1, -3):
            if len(fragments) >= -place:
                fragments[place] = _marked(fragments[place])
        room = max(LEAST_ROOM, self._route.facts.window - self.tokens)
        tail = json_bytes(self._tail(request, min(room, output_limit(self._route, max_output))))[1:]
        body = joined(self._head, fragments, b"]," + tail)
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "anthropic-version": API_VERSION,
            **dict(self._route.vendor.headers),
            **self._route.key_header("x-api-key"),
        }
        return Wire(path="/v1/messages", headers=headers, body=body)

    def _write_head(self, prefix: Prefix) -> bytes:
        head: dict[str, Any] = {"model": self._route.model}
        if prefix.system.strip():
            head["system"] = [{"type": "text", "text": prefix.system, "cache_control": CACHE}]
        if prefix.tools and self._route.facts.tools:
            tools: list[dict[str, Any]] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in prefix.tools
            ]
            tools[-1]["cache_control"] = CACHE
            head["tools"] = tools
        return json_bytes(head)[:-1] + b',"messages":['

    def _tail(self, request: ModelRequest, max_output: int) -> dict[str, Any]:
        has_tools = bool(request.prefix.tools) and self._route.facts.tools
        tail: dict[str, Any] = {"stream": True, "max_tokens": max_output}
        if has_tools and not request.use_tools:
            tail["tool_choice"] = {"type": "none"}
        level = self._route.effort(request.effort, tools=has_tools)
        if level is not None:
            tail.update(self._thinking(level, max_output))
        return tail

    def _thinking(self, level: Level, max_output: int) -> dict[str, Any]:
        facts = self._route.facts
        if facts.thinking == "adaptive":
            if level == "none":
                return {"thinking": {"type": facts.thinking_off}}
            return {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": level},
            }
        budget = min(BUDGETS.get(level, 0), max_output // 2)
        if facts.thinking != "budget" or budget < LEAST_BUDGET or not self._may_think():
            return {}
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}

    def _may_think(self) -> bool:
        """With a budget, a turn that called tools must have begun with thinking: one made by another model did not."""
        turns = self._turns.turns
        last = next((turn for turn in reversed(turns) if turn.role is Role.ASSISTANT), None)
        if last is None or not turns[-1].results:
            return True
        first = last.parts[0]
        return isinstance(first, Thinking) and bool(first.opaque)


def _marked(fragment: bytes) -> bytes:
    return fragment[: -len(END_OF_TURN)] + CACHE_MARK + END_OF_TURN if fragment.endswith(END_OF_TURN) else fragment


def _turn(turn: Turn) -> bytes:
    """One turn; its last block ends the fragment, so that a cache mark can be put there."""
    content = [_result(result) for result in turn.results]
    content += (block for part in turn.parts for block in _blocks(part))
    return json_bytes({"role": turn.role.value, "content": content})


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


DIALECT: Dialect = Anthropic()
