"""OpenAI chat completions, as OpenAI, OpenRouter, Ollama, vLLM, llama.cpp and many others speak it: writing
requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hermes_agent.core.errors import (
    AuthRefused,
    ContentRefused,
    ContextTooLong,
    ModelNotFound,
    OutOfCredit,
    Overloaded,
    RateLimited,
    ServerFailed,
)
from hermes_agent.core.messages import File, Image, Part, Role, Text, Thinking, ToolCall, ToolResult
from hermes_agent.core.model import ModelRequest, Prefix
from hermes_agent.providers.conversation import ConversationCompiler
from hermes_agent.providers.dialect import Dialect, Table
from hermes_agent.providers.pieces import arguments_of, data_url, json_bytes, safe_id, written
from hermes_agent.providers.replies.openai_chat import ChatDecoder
from hermes_agent.providers.verifier import Turn

ERRORS: Table = {
    "billing_hard_limit_reached": OutOfCredit,
    "billing_not_active": OutOfCredit,
    "content_filter": ContentRefused,
    "content_policy_violation": ContentRefused,
    "context_length_exceeded": ContextTooLong,
    "exceed_context_size_error": ContextTooLong,
    "insufficient_quota": OutOfCredit,
    "invalid_api_key": AuthRefused,
    "model_not_found": ModelNotFound,
    "overloaded": Overloaded,
    "overloaded_error": Overloaded,
    "rate_limit_exceeded": RateLimited,
    "server_error": ServerFailed,
}


class ChatCompiler(ConversationCompiler):
    """Writes chat completion requests: model, tools and messages first, what may change from one to the next last."""

    def _path(self) -> str:
        return "/chat/completions"

    def _head(self, prefix: Prefix) -> bytes:
        head: dict[str, Any] = {"model": self._route.model}
        if self.has_tools(prefix):
            head["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in prefix.tools
            ]
        messages = b""
        if prefix.system.strip():
            messages = json_bytes({"role": self._route.vendor.quirks.system_role, "content": prefix.system}) + b","
        return json_bytes(head)[:-1] + b',"messages":[' + messages

    def _tail(self, request: ModelRequest, max_output: int | None) -> dict[str, Any]:
        quirks = self._route.vendor.quirks
        has_tools = self.has_tools(request.prefix)
        tail: dict[str, Any] = {"stream": True}
        if quirks.stream_usage:
            tail["stream_options"] = {"include_usage": True}
        if has_tools and not request.use_tools:
            tail["tool_choice"] = "none"
        if max_output is not None:
            tail[quirks.max_tokens_field] = max_output
        level = self._route.effort(request.effort, tools=has_tools)
        if level is not None and quirks.effort_field:
            tail[quirks.effort_field] = {"effort": level} if quirks.effort_field == "reasoning" else level
        if quirks.cache_key and request.session:
            tail["prompt_cache_key"] = request.session
        return tail

    def _turn(self, turn: Turn) -> bytes:
        if turn.role is Role.ASSISTANT:
            return json_bytes(self._assistant(turn))
        messages = [_result(result) for result in turn.results]
        content = [*_attached(turn.results), *(block for part in turn.parts for block in _blocks(part))]
        if content or not messages:
            messages.append({"role": "user", "content": _plain(content)})
        return b",".join(json_bytes(message) for message in messages)

    def _assistant(self, turn: Turn) -> dict[str, Any]:
        words = "".join(part.text for part in turn.parts if isinstance(part, Text))
        calls = [part for part in turn.parts if isinstance(part, ToolCall)]
        message: dict[str, Any] = {"role": "assistant", "content": words or (None if calls else "")}
        message.update(self._reasoning([part for part in turn.parts if isinstance(part, Thinking)]))
        if calls:
            message["tool_calls"] = [
                {
                    "id": safe_id(call.id),
                    "type": "function",
                    "function": {"name": call.name, "arguments": json_bytes(arguments_of(call)).decode()},
                }
                for call in calls
            ]
        return message

    def _reasoning(self, thoughts: list[Thinking]) -> dict[str, Any]:
        name = self._route.vendor.quirks.reasoning_field
        if name == "reasoning_details":
            details = [entry for thought in thoughts if thought.opaque for entry in _details(thought.opaque)]
            return {name: details} if details else {}
        words = "".join(thought.text for thought in thoughts)
        return {name: words} if name and words else {}


def _details(opaque: str) -> list[msgspec.Raw]:
    return msgspec.json.decode(opaque, type=list[msgspec.Raw])


def _result(result: ToolResult) -> dict[str, Any]:
    words = "\n\n".join(_words(part) for part in result.parts if _words(part))
    if not words and any(isinstance(part, (Image, File)) for part in result.parts):
        words = "(see the attachment in the next message)"
    if result.is_error and not words.startswith(("{", "Error")):
        words = f"Error: {words}" if words else "Error"
    return {"role": "tool", "tool_call_id": safe_id(result.call_id), "content": words}


def _words(part: Part) -> str:
    match part:
        case Text():
            return part.text
        case File():
            return written(part) or ""
        case _:
            return ""


def _attached(results: list[ToolResult]) -> Iterator[dict[str, Any]]:
    """A tool message holds words only: what else a tool answered follows as the user's."""
    for result in results:
        attached = [part for part in result.parts if isinstance(part, (Image, File)) and not _words(part)]
        if attached:
            yield {
                "type": "text",
                "text": f"(Attachment of the result of {result.name}, call {safe_id(result.call_id)}:)",
            }
        for part in attached:
            yield from _blocks(part)


def _blocks(part: Part) -> Iterator[dict[str, Any]]:
    match part:
        case Text():
            yield {"type": "text", "text": part.text}
        case Image():
            yield {"type": "image_url", "image_url": {"url": data_url(part)}}
        case File():
            words = written(part)
            if words is None:
                yield {"type": "file", "file": {"filename": part.name, "file_data": data_url(part)}}
            else:
                yield {"type": "text", "text": words}
        case _:
            return


def _plain(content: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Words alone as one text, which every server takes; a list only where there is more than words."""
    if all(block["type"] == "text" for block in content):
        return "\n\n".join(block["text"] for block in content)
    return content


DIALECT = Dialect(errors=ERRORS, compiler=ChatCompiler, reader=ChatDecoder)
