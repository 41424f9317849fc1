"""Parses an OpenAI chat-completions request, and rejects what the real service rejects.

The rules and error texts are those of https://platform.openai.com/docs/api-reference/chat/create.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
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

TOP_LEVEL = {"oneOf", "anyOf", "allOf", "enum", "not"}
TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
REASONING_FIELDS = ("reasoning_content", "reasoning")


def read_openai(body: bytes) -> Heard:
    """Parses a request body. Raises `RequestRefused` with the service's own status and words."""
    plain = _object(body)
    model, messages = plain.get("model"), plain.get("messages")
    if not isinstance(model, str) or not model:
        raise RequestRefused("you must provide a model parameter")
    if not isinstance(messages, list) or not messages:
        raise RequestRefused("Invalid 'messages': empty array. Expected an array with minimum length 1.")
    _check_order(messages)
    tools = tuple(_tool(entry) for entry in plain.get("tools", ()))
    names: dict[str, str] = {}
    heard = [_message(entry, names) for entry in messages if entry["role"] not in ("system", "developer")]
    limit = plain.get("max_completion_tokens", plain.get("max_tokens"))
    return Heard(
        model=model,
        messages=tuple(heard),
        system="\n\n".join(_plain(entry) for entry in messages if entry["role"] in ("system", "developer")),
        tools=tools,
        use_tools=plain.get("tool_choice") != "none",
        stream=bool(plain.get("stream")),
        stream_usage=bool((plain.get("stream_options") or {}).get("include_usage")),
        max_output=limit,
        effort=str(plain.get("reasoning_effort") or ""),
        prompt=prompt_text(plain.get("tools", ()), *messages),
    )


def _object(body: bytes) -> Json:
    try:
        plain = json.loads(body)
    except ValueError as error:
        raise RequestRefused("We could not parse the JSON body of your request.") from error
    if not isinstance(plain, dict):
        raise RequestRefused("Invalid type for the body: expected an object.")
    return plain


def _check_order(messages: list[Json]) -> None:
    """Every tool call is answered right after the message that made it, and nothing else is an answer."""
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in ("system", "developer", "user", "assistant", "tool"):
            raise RequestRefused(f"Invalid value: '{role}'. messages[{index}].role")
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                raise RequestRefused(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with"
                    f" 'tool_calls'. messages.[{index}].role"
                )
            open_calls.remove(message["tool_call_id"])
            continue
        _refuse_open(open_calls)
        calls = message.get("tool_calls")
        if calls is not None and not calls:
            raise RequestRefused(f"Invalid 'messages[{index}].tool_calls': empty array.")
        if role != "assistant" and calls:
            raise RequestRefused(f"Unknown parameter: 'messages[{index}].tool_calls'.")
        if message.get("content") is None and not calls:
            raise RequestRefused(f"Invalid value for 'content': expected a string, got null. messages[{index}].content")
        open_calls = [call["id"] for call in calls or ()]
    _refuse_open(open_calls)


def _refuse_open(open_calls: list[str]) -> None:
    if open_calls:
        raise RequestRefused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            f" 'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_calls)}"
        )


def _tool(entry: Json) -> ToolSchema:
    function = entry.get("function") or {}
    name = str(function.get("name", ""))
    if entry.get("type") != "function" or not TOOL_NAME.match(name):
        raise RequestRefused(f"Invalid 'tools[].function.name': {name!r} does not match {TOOL_NAME.pattern}.")
    parameters = function.get("parameters", {})
    if wrong := refused_parameters(parameters):
        raise RequestRefused(f"Invalid schema for function '{name}': {wrong}")
    return ToolSchema(name=name, description=function.get("description", ""), parameters=parameters)


def refused_parameters(parameters: Json) -> str:
    """The service's error about a function's parameters; empty where they are valid."""
    if parameters and parameters.get("type") != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{parameters.get('type')}\"'."
    if not TOP_LEVEL.isdisjoint(parameters):
        return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    return "array schema missing items." if _lacks_items(parameters) else ""


def _lacks_items(schema: object) -> bool:
    if isinstance(schema, list):
        return any(_lacks_items(one) for one in schema)
    if not isinstance(schema, dict):
        return False
    if schema.get("type") == "array" and not {"items", "prefixItems"} & schema.keys():
        return True
    return any(_lacks_items(one) for one in schema.values())


def _message(entry: Json, names: dict[str, str]) -> Message:
    """A message of the conversation; `names` collects which call id belongs to which tool."""
    match entry["role"]:
        case "tool":
            call_id = entry["tool_call_id"]
            parts = tuple(part for part in _content(entry) if isinstance(part, Text | Image | File))
            return Message(
                role=Role.TOOL, parts=(ToolResult(call_id=call_id, name=names.get(call_id, ""), parts=parts),)
            )
        case "assistant":
            calls = [_call(call) for call in entry.get("tool_calls") or ()]
            names.update((call.id, call.name) for call in calls)
            return Message(role=Role.ASSISTANT, parts=(*_thinking(entry), *_content(entry), *calls))
        case _:
            return Message(role=Role.USER, parts=tuple(_content(entry)))


def _call(entry: Json) -> ToolCall:
    function = entry["function"]
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return ToolCall(id=entry["id"], name=function["name"], arguments={}, broken=str(function["arguments"]))
    return ToolCall(id=entry["id"], name=function["name"], arguments=arguments)


def _thinking(entry: Json) -> list[Part]:
    texts = [entry[name] for name in REASONING_FIELDS if entry.get(name)]
    return [Thinking(text=text) for text in texts[:1]]


def _content(entry: Json) -> list[Part]:
    origin = {"assistant": Origin.MODEL, "tool": Origin.TOOL}.get(entry["role"], Origin.OWNER)
    content = entry.get("content")
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(text=content, origin=origin)] if content else []
    return [_part(part, origin) for part in content]


def _part(part: Json, origin: Origin) -> Part:
    match part.get("type"):
        case "text":
            return Text(text=part["text"], origin=origin)
        case "image_url":
            url = str(part["image_url"]["url"])
            head, comma, data = url.partition(",")
            if head.startswith("data:") and comma:
                return Image(media_type=head.removeprefix("data:").split(";")[0], data=data, origin=origin)
            return Image(url=url, origin=origin)
        case "file":
            file = part["file"]
            head, _, data = str(file["file_data"]).partition(",")
            media_type = head.removeprefix("data:").split(";")[0]
            return File(name=file.get("filename", ""), media_type=media_type, data=data, origin=origin)
        case other:
            raise RequestRefused(f"Invalid value: '{other}'. Supported values are: 'text', 'image_url', 'file'.")


def _plain(entry: Json) -> str:
    return "".join(part.text for part in _content(entry) if isinstance(part, Text))
