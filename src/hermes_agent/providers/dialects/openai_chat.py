"""OpenAI chat completions, as OpenAI, OpenRouter, Ollama, vLLM, llama.cpp and many others speak it: writing
requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hermes_agent.core.messages import File, Image, Part, Role, Text, Thinking, ToolCall, ToolResult
from hermes_agent.core.model import ModelRequest, Prefix
from hermes_agent.providers.conversation import ConversationCompiler
from hermes_agent.providers.dialect import Dialect
from hermes_agent.providers.openai_errors import ERRORS
from hermes_agent.providers.pieces import (
    arguments_of,
    attached,
    data_url,
    json_bytes,
    nine_id,
    safe_id,
    words_in,
    written,
)
from hermes_agent.providers.replies.openai_chat import ChatDecoder
from hermes_agent.providers.route import Route
from hermes_agent.providers.vendor import Level
from hermes_agent.providers.verifier import Turn

SEEN = "(I have the results.)"

# What tells a server that the last message is the beginning of the reply, in place of its closing brace.
PREFILL_MARKS = {"prefix": b',"prefix":true}', "partial": b',"partial":true}'}


class ChatCompiler(ConversationCompiler):
    """Writes chat completion requests: model, tools and messages first, what may change from one to the next last."""

    def __init__(self, route: Route) -> None:
        super().__init__(route)
        self._offered = True

    def take(self, request: ModelRequest) -> None:
        offered = request.use_tools or self._route.vendor.quirks.tool_choice
        if offered is not self._offered:
            self._offered, self._prefix = offered, None
        super().take(request)

    def has_tools(self, prefix: Prefix) -> bool:
        return self._offered and super().has_tools(prefix)

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

    def _shown(self, fragments: list[bytes]) -> list[bytes]:
        mark = PREFILL_MARKS.get(self._route.vendor.quirks.prefill, b"") if self._prefill else b""
        return [*fragments[:-1], fragments[-1][:-1] + mark] if mark else fragments

    def _tail(self, request: ModelRequest, max_output: int | None) -> dict[str, Any]:
        quirks = self._route.vendor.quirks
        has_tools = self.has_tools(request.prefix)
        tail: dict[str, Any] = {"stream": True, **quirks.also}
        if quirks.stream_usage:
            tail["stream_options"] = {"include_usage": True}
        if has_tools and not request.use_tools and quirks.tool_choice:
            tail["tool_choice"] = "none"
        if max_output is not None:
            tail[quirks.max_tokens_field] = max_output
        level = self._route.effort(request.effort, tools=has_tools)
        if level is not None:
            tail.update(self._thinking(level))
        if request.prefill and quirks.prefill == "continue":
            tail.update(continue_final_message=True, add_generation_prompt=False)
        if quirks.cache_marks and self._route.model.startswith(quirks.cache_marks):
            hour = {"ttl": "1h"} if self._route.cache_ttl == "1h" else {}
            tail["cache_control"] = {"type": "ephemeral", **hour}
        if quirks.cache_key and request.session:
            tail["prompt_cache_key"] = request.session
        return tail

    def _thinking(self, level: Level) -> dict[str, Any]:
        """The fields that ask for this level of reasoning."""
        quirks = self._route.vendor.quirks
        if level == "none" and quirks.thinking_off:
            return dict(quirks.thinking_off)
        fields: dict[str, Any] = dict(quirks.thinking_on)
        if quirks.effort_field and self._route.facts.thinking == "effort":
            fields[quirks.effort_field] = {"effort": level} if quirks.effort_field == "reasoning" else level
        return fields

    def _turn(self, turn: Turn) -> bytes:
        if turn.role is Role.ASSISTANT:
            return json_bytes(self._assistant(turn))
        messages = [self._result(result) for result in turn.results]
        content = [*self._attached(turn.results), *(block for part in turn.parts for block in _blocks(part))]
        if content and messages and self._route.vendor.quirks.reply_after_results:
            messages.append({"role": "assistant", "content": SEEN})
        if content or not messages:
            messages.append({"role": "user", "content": _plain(content)})
        return b",".join(json_bytes(message) for message in messages)

    def _assistant(self, turn: Turn) -> dict[str, Any]:
        words = "".join(part.text for part in turn.parts if isinstance(part, Text))
        calls = [part for part in turn.parts if isinstance(part, ToolCall)]
        message: dict[str, Any] = {"role": "assistant", "content": words or (None if calls else "")}
        message.update(self._reasoning([part for part in turn.parts if isinstance(part, Thinking)], words))
        if calls:
            message["tool_calls"] = [
                {
                    "id": self._id(call.id),
                    "type": "function",
                    "function": {"name": call.name, "arguments": json_bytes(arguments_of(call)).decode()},
                }
                for call in calls
            ]
        return message

    def _reasoning(self, thoughts: list[Thinking], said: str) -> dict[str, Any]:
        name = self._route.vendor.quirks.reasoning_field
        if name == "reasoning_details":
            details = [entry for thought in thoughts if thought.opaque for entry in _details(thought.opaque)]
            return {name: details} if details else {}
        words = "".join(thought.text for thought in thoughts)
        if name == "thinking_parts" and words:
            thinking = {"type": "thinking", "thinking": [{"type": "text", "text": words}]}
            return {"content": [thinking, *([{"type": "text", "text": said}] if said else [])]}
        return {name: words} if name and words else {}

    def _id(self, call_id: str) -> str:
        return nine_id(call_id) if self._route.vendor.quirks.call_ids == "nine" else safe_id(call_id)

    def _result(self, result: ToolResult) -> dict[str, Any]:
        words = words_in(result)
        if not words and any(isinstance(part, (Image, File)) for part in result.parts):
            words = "(see the attachment in the next message)"
        if result.is_error and not words.startswith(("{", "Error")):
            words = f"Error: {words}" if words else "Error"
        return {"role": "tool", "tool_call_id": self._id(result.call_id), "content": words}

    def _attached(self, results: list[ToolResult]) -> Iterator[dict[str, Any]]:
        """A tool message holds words only: what else a tool answered follows as the user's."""
        for result in results:
            parts = attached(result)
            if parts:
                yield {
                    "type": "text",
                    "text": f"(Attachment of the result of {result.name}, call {self._id(result.call_id)}:)",
                }
            for part in parts:
                yield from _blocks(part)


def _details(opaque: str) -> list[msgspec.Raw]:
    """The blocks that this dialect kept; none where the model was asked in another one then."""
    try:
        return msgspec.json.decode(opaque, type=list[msgspec.Raw])
    except msgspec.MsgspecError:
        return []


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
