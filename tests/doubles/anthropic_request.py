"""Reads an Anthropic Messages request, and refuses what the real service refuses.

The rules are those of https://docs.anthropic.com/en/api/messages and of the guides to thinking and caching.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from hermes_agent.core.messages import (
    File,
    Image,
    Message,
    Origin,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSchema,
)
from hermes_agent.providers.demo.script import Heard, RequestRefused, prompt_text

Json = Mapping[str, Any]

TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
MOST_BREAKPOINTS = 4
LEAST_THINKING = 1024


def read_anthropic(body: bytes) -> Heard:
    """The question in a request body. Raises `RequestRefused` with the service's own status and words."""
    try:
        plain = json.loads(body)
    except ValueError as error:
        raise RequestRefused("The request body is not valid JSON") from error
    for name in ("model", "max_tokens", "messages"):
        if name not in plain:
            raise RequestRefused(f"{name}: Field required")
    messages = plain["messages"]
    if not messages:
        raise RequestRefused("messages: at least one message is required")
    _check_thinking(plain)
    _check_breakpoints(plain)
    _check_order(messages)
    names: dict[str, str] = {}
    return Heard(
        model=plain["model"],
        messages=tuple(message for entry in messages for message in _messages(entry, names)),
        system="\n\n".join(block["text"] for block in blocks(plain.get("system", ()))),
        tools=tuple(_tool(entry) for entry in plain.get("tools", ())),
        use_tools=(plain.get("tool_choice") or {}).get("type") != "none",
        stream=bool(plain.get("stream")),
        max_output=plain["max_tokens"],
        effort=str((plain.get("output_config") or {}).get("effort") or ""),
        prompt=prompt_text(*prompt_blocks(plain)),
    )


def blocks(content: str | Iterable[Json]) -> list[Json]:
    """Content as the list of blocks that a plain string stands for."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def prompt_blocks(plain: Json) -> list[Json]:
    """Everything that the model reads, in the order in which the service caches it: tools, system, messages."""
    said = [{**block, "role": entry["role"]} for entry in plain["messages"] for block in blocks(entry["content"])]
    return [*plain.get("tools", ()), *blocks(plain.get("system", ())), *said]


def sign(thought: str) -> str:
    """The signature under a thought; the service refuses a thought whose signature is not its own."""
    return base64.b64encode(hashlib.sha256(b"thought:" + thought.encode()).digest()).decode()


def seal(thought: str) -> str:
    """A thought as the opaque data of a redacted block."""
    return base64.b64encode(b"sealed:" + thought.encode()).decode()


def _check_thinking(plain: Json) -> None:
    thinking = plain.get("thinking") or {}
    if thinking.get("type") != "enabled":
        return
    tokens = thinking.get("budget_tokens", 0)
    if tokens < LEAST_THINKING:
        raise RequestRefused(
            f"thinking.enabled.budget_tokens: Input should be greater than or equal to {LEAST_THINKING}"
        )
    if tokens >= plain["max_tokens"]:
        raise RequestRefused("`max_tokens` must be greater than `thinking.budget_tokens`")
    if plain.get("temperature", 1) != 1:
        raise RequestRefused("`temperature` may only be set to 1 when thinking is enabled")


def _check_breakpoints(plain: Json) -> None:
    found = sum("cache_control" in block for block in prompt_blocks(plain))
    if found > MOST_BREAKPOINTS:
        raise RequestRefused(
            f"A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided. Found {found}."
        )


def _check_order(messages: list[Json]) -> None:
    """Every `tool_use` is answered at the beginning of the next message, ids are unique, no text is empty."""
    if messages[0]["role"] != "user":
        raise RequestRefused('messages: first message must use the "user" role')
    open_calls: list[str] = []
    known: set[str] = set()
    for index, entry in enumerate(messages):
        if entry["role"] not in ("user", "assistant"):
            raise RequestRefused(f"messages.{index}.role: Input should be 'user' or 'assistant'")
        content = blocks(entry["content"])
        if not content and index < len(messages) - 1:
            raise RequestRefused(f"messages.{index}: all messages must have non-empty content")
        for place, block in enumerate(content):
            _check_block(block, f"messages.{index}.content.{place}")
        _check_answers(open_calls, content, index)
        open_calls = [block["id"] for block in content if block["type"] == "tool_use"]
        if known.intersection(open_calls) or len(set(open_calls)) < len(open_calls):
            raise RequestRefused(f"messages.{index}: `tool_use` ids must be unique")
        known.update(open_calls)
    if open_calls:
        _check_answers(open_calls, [], len(messages))


def _check_block(block: Json, place: str) -> None:
    match block["type"]:
        case "text" if not block["text"]:
            raise RequestRefused("messages: text content blocks must be non-empty")
        case "thinking" if block["signature"] != sign(block["thinking"]):
            raise RequestRefused(f"{place}: Invalid `signature` in `thinking` block")
        case "tool_use" if not isinstance(block["input"], dict):
            raise RequestRefused(f"{place}.tool_use.input: Input should be a valid dictionary")


def _check_answers(open_calls: list[str], content: list[Json], index: int) -> None:
    answered: list[str] = []
    for block in content:
        if block["type"] != "tool_result":
            break
        answered.append(block["tool_use_id"])
    missing = [call for call in open_calls if call not in answered]
    if missing:
        raise RequestRefused(
            f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after:"
            f" {', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next"
            " message."
        )
    for block in content:
        if block["type"] == "tool_result" and block["tool_use_id"] not in open_calls:
            raise RequestRefused(
                f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {block['tool_use_id']}."
                " Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )


def _tool(entry: Json) -> ToolSchema:
    name = str(entry.get("name", ""))
    if not TOOL_NAME.match(name):
        raise RequestRefused(f"tools.0.custom.name: String should match pattern '{TOOL_NAME.pattern}'")
    schema = entry["input_schema"]
    if schema.get("type") != "object":
        raise RequestRefused("tools.0.custom.input_schema.type: Input should be 'object'")
    if not {"oneOf", "anyOf", "allOf"}.isdisjoint(schema):
        raise RequestRefused(
            "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
        )
    return ToolSchema(name=name, description=entry.get("description", ""), parameters=schema)


def _messages(entry: Json, names: dict[str, str]) -> list[Message]:
    """One entry as neutral messages: the tool results of a user entry become messages of their own."""
    content = blocks(entry["content"])
    if entry["role"] == "assistant":
        parts = tuple(_part(block, Origin.MODEL) for block in content)
        names.update((part.id, part.name) for part in parts if isinstance(part, ToolCall))
        return [Message(role=Role.ASSISTANT, parts=parts)]
    results = [_result(block, names) for block in content if block["type"] == "tool_result"]
    said = tuple(_part(block, Origin.OWNER) for block in content if block["type"] != "tool_result")
    messages = [Message(role=Role.TOOL, parts=(result,)) for result in results]
    return [*messages, Message(role=Role.USER, parts=said)] if said else messages


def _result(block: Json, names: dict[str, str]) -> ToolResult:
    parts = tuple(_part(part, Origin.TOOL) for part in blocks(block.get("content", ())))
    return ToolResult(
        call_id=block["tool_use_id"],
        name=names.get(block["tool_use_id"], ""),
        parts=tuple(part for part in parts if isinstance(part, Text | Image | File)),
        is_error=bool(block.get("is_error")),
    )


def _part(block: Json, origin: Origin) -> Part:
    match block["type"]:
        case "text":
            return Text(text=block["text"], origin=origin)
        case "thinking":
            return Thinking(text=block["thinking"], opaque=block["signature"])
        case "redacted_thinking":
            return Thinking(text="", opaque=block["data"], redacted=True)
        case "tool_use":
            return ToolCall(id=block["id"], name=block["name"], arguments=block["input"])
        case "image" | "document" as kind:
            return _media(kind, block, origin)
        case other:
            raise RequestRefused(f"messages: Input tag '{other}' found using 'type' does not match any expected tags")


def _media(kind: str, block: Json, origin: Origin) -> Image | File:
    source = block["source"]
    data, media_type = source.get("data", ""), source.get("media_type", "")
    if kind == "document":
        return File(name=block.get("title") or "", media_type=media_type, data=data, origin=origin)
    if source["type"] == "url":
        return Image(url=source["url"], origin=origin)
    return Image(media_type=media_type, data=data, origin=origin)
