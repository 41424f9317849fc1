"""Reads a Bedrock Converse request, and refuses what the real service refuses.

The fields are those of https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html; the
sentences are the service's own.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
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
from tests.doubles.anthropic_request import LEAST_THINKING, MOST_BREAKPOINTS, sign

Json = Mapping[str, Any]

REQUEST_FIELDS = frozenset(
    {"messages", "system", "inferenceConfig", "toolConfig", "guardrailConfig", "additionalModelRequestFields"}
    | {"promptVariables", "additionalModelResponseFieldPaths", "requestMetadata", "performanceConfig"}
    | {"serviceTier", "outputConfig"}
)
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CALL_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
DOCUMENT_NAME = re.compile(r"(?!.* {2})[A-Za-z0-9 \-()\[\]]{1,200}")
IMAGES = frozenset({"png", "jpeg", "gif", "webp"})
DOCUMENTS = frozenset({"pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"})


def read_bedrock(body: bytes, model: str, *, stream: bool) -> Heard:
    """The question in a request body. Raises `RequestRefused` with the service's own status and words."""
    try:
        plain = json.loads(body)
    except ValueError as error:
        raise RequestRefused("The request body is not valid JSON") from error
    unknown = plain.keys() - REQUEST_FIELDS
    if unknown:
        raise RequestRefused(f"Malformed input request: extraneous key [{min(unknown)}] is not permitted")
    messages = plain.get("messages") or []
    _check_order(messages)
    _check_calls(messages, has_tools="toolConfig" in plain)
    _check_thinking(plain)
    if sum("cachePoint" in block for block in prompt_blocks(plain)) > MOST_BREAKPOINTS:
        raise RequestRefused(f"A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided.")
    names: dict[str, str] = {}
    thinking = plain.get("additionalModelRequestFields", {})
    return Heard(
        model=model,
        messages=tuple(message for entry in messages for message in _messages(entry, names)),
        system="\n\n".join(block["text"] for block in plain.get("system", ()) if "text" in block),
        tools=tuple(_tool(entry["toolSpec"]) for entry in _tools(plain) if "toolSpec" in entry),
        stream=stream,
        max_output=plain.get("inferenceConfig", {}).get("maxTokens"),
        effort=str(thinking.get("output_config", {}).get("effort") or ""),
        prompt=prompt_text(*prompt_blocks(plain)),
    )


def prompt_blocks(plain: Json) -> list[Json]:
    """Everything that the model reads, cache points between it, in the order in which it is cached."""
    said = [{**block, "role": entry["role"]} for entry in plain.get("messages", ()) for block in entry["content"]]
    return [*_tools(plain), *plain.get("system", ()), *said]


def marked_blocks(body: bytes) -> Iterator[tuple[Json, bool]]:
    """The blocks without the cache points, each with whether one follows it."""
    blocks = prompt_blocks(json.loads(body))
    for place, block in enumerate(blocks):
        if "cachePoint" not in block:
            yield block, place + 1 < len(blocks) and "cachePoint" in blocks[place + 1]


def _tools(plain: Json) -> list[Json]:
    return list(plain.get("toolConfig", {}).get("tools", ()))


def _check_thinking(plain: Json) -> None:
    thinking = plain.get("additionalModelRequestFields", {}).get("thinking", {})
    if thinking.get("type") != "enabled":
        return
    told = "The model returned the following errors: "
    tokens = thinking.get("budget_tokens", 0)
    if tokens < LEAST_THINKING:
        raise RequestRefused(
            f"{told}thinking.enabled.budget_tokens: Input should be greater than or equal to {LEAST_THINKING}"
        )
    if tokens >= plain.get("inferenceConfig", {}).get("maxTokens", 4096):
        raise RequestRefused(f"{told}`max_tokens` must be greater than `thinking.budget_tokens`")


def _check_order(messages: list[Json]) -> None:
    """User and assistant alternate, beginning with the user; nothing is empty."""
    if not messages or messages[0]["role"] != "user":
        raise RequestRefused(
            "A conversation must start with a user message. Try again with a conversation that starts with a user"
            " message."
        )
    for index, entry in enumerate(messages):
        if entry["role"] not in ("user", "assistant"):
            raise RequestRefused(f"Value '{entry['role']}' at 'messages.{index}.role' failed to satisfy constraint")
        if index and entry["role"] == messages[index - 1]["role"]:
            raise RequestRefused(
                "A conversation must alternate between user and assistant roles. Make sure the conversation alternates"
                " between user and assistant roles and try again."
            )
        if not entry["content"]:
            raise RequestRefused(
                f"The content field in the Message object at messages.{index} is empty. Add a ContentBlock object to"
                " the content field and try again."
            )
        for place, block in enumerate(entry["content"]):
            _check_block(block, f"messages.{index}.content.{place}")
        kinds = {name for block in entry["content"] for name in block}
        if "document" in kinds and "text" not in kinds:
            raise RequestRefused(f"A text block is required with a document at messages.{index}.content.")


def _check_block(block: Json, place: str) -> None:
    match block:
        case {"text": words} if not words.strip():
            raise RequestRefused(
                f"The text field in the ContentBlock object at {place} is blank. Add text to the text field, and try"
                " again."
            )
        case {"reasoningContent": {"reasoningText": thought}} if thought.get("signature") != sign(thought["text"]):
            raise RequestRefused(
                f"The model returned the following errors: {place}: Invalid `signature` in `thinking` block"
            )
        case {"toolUse": call} if not (isinstance(call["input"], dict) and CALL_ID.fullmatch(call["toolUseId"])):
            raise RequestRefused(f"The format of the value at {place}.toolUse.input is invalid. Provide a json object.")
        case {"toolResult": answer}:
            for inner in answer["content"]:
                _check_block(inner, f"{place}.toolResult")
        case {"image": {"format": kind}} if kind not in IMAGES:
            raise RequestRefused(f"Value '{kind}' at '{place}.image.format' failed to satisfy constraint")
        case {"document": paper} if paper["format"] not in DOCUMENTS or not DOCUMENT_NAME.fullmatch(paper["name"]):
            raise RequestRefused(
                "The file name provided contains unsupported characters or the format is unknown: alphanumeric,"
                " whitespace, hyphens, parentheses and square brackets are allowed."
            )


def _check_calls(messages: list[Json], *, has_tools: bool) -> None:
    open_calls: list[str] = []
    for index, entry in enumerate(messages):
        answered = [block["toolResult"]["toolUseId"] for block in entry["content"] if "toolResult" in block]
        made = [block["toolUse"]["toolUseId"] for block in entry["content"] if "toolUse" in block]
        if (answered or made) and not has_tools:
            raise RequestRefused(
                "The toolConfig field must be defined when using toolUse and toolResult content blocks."
            )
        _check_answers(open_calls, answered, index)
        if len(set(made)) < len(made):
            raise RequestRefused(f"The toolUse blocks at messages.{index}.content contain duplicate Ids.")
        open_calls = made
    _check_answers(open_calls, [], len(messages))


def _check_answers(open_calls: list[str], answered: list[str], index: int) -> None:
    missing = [call for call in open_calls if call not in answered]
    if missing:
        raise RequestRefused(
            f"Expected toolResult blocks at messages.{index}.content for the following Ids: {', '.join(missing)}"
        )
    if len(answered) > len(open_calls):
        raise RequestRefused(
            f"The number of toolResult blocks at messages.{index}.content exceeds the number of toolUse blocks of"
            " previous turn."
        )


def _tool(entry: Json) -> ToolSchema:
    name = entry["name"]
    if not TOOL_NAME.fullmatch(name) or entry.get("description") == "":
        raise RequestRefused(f"Value '{name}' at 'toolConfig.tools.1.member.toolSpec' failed to satisfy constraint")
    schema = entry["inputSchema"]["json"]
    if schema.get("type") != "object":
        raise RequestRefused("The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of: object.")
    return ToolSchema(name=name, description=entry.get("description", ""), parameters=schema)


def _messages(entry: Json, names: dict[str, str]) -> list[Message]:
    """One entry as neutral messages: the tool results of a user entry become messages of their own."""
    blocks = [block for block in entry["content"] if "cachePoint" not in block]
    if entry["role"] == "assistant":
        parts = tuple(_part(block, Origin.MODEL) for block in blocks)
        names.update((part.id, part.name) for part in parts if isinstance(part, ToolCall))
        return [Message(role=Role.ASSISTANT, parts=parts)]
    results = [_result(block["toolResult"], names) for block in blocks if "toolResult" in block]
    said = tuple(_part(block, Origin.OWNER) for block in blocks if "toolResult" not in block)
    messages = [Message(role=Role.TOOL, parts=(result,)) for result in results]
    return [*messages, Message(role=Role.USER, parts=said)] if said else messages


def _result(answer: Json, names: dict[str, str]) -> ToolResult:
    parts = tuple(_part(block, Origin.TOOL) for block in answer["content"])
    return ToolResult(
        call_id=answer["toolUseId"],
        name=names.get(answer["toolUseId"], ""),
        parts=tuple(part for part in parts if isinstance(part, Text | Image | File)),
        is_error=answer.get("status") == "error",
    )


def _part(block: Json, origin: Origin) -> Part:
    match block:
        case {"text": words}:
            return Text(text=words, origin=origin)
        case {"image": picture}:
            return Image(media_type=f"image/{picture['format']}", data=_data(picture), origin=origin)
        case {"document": paper}:
            return File(name=paper["name"], media_type=paper["format"], data=_data(paper), origin=origin)
        case {"toolUse": call}:
            return ToolCall(id=call["toolUseId"], name=call["name"], arguments=call["input"])
        case {"reasoningContent": {"reasoningText": thought}}:
            return Thinking(text=thought["text"], opaque=thought["signature"])
        case {"reasoningContent": {"redactedContent": sealed}}:
            return Thinking(text="", opaque=sealed, redacted=True)
        case _:
            raise RequestRefused("The ContentBlock object holds no field that this operation knows.")


def _data(block: Json) -> str:
    """The bytes, which JSON carries as base64."""
    data: str = block["source"]["bytes"]
    base64.b64decode(data, validate=True)
    return data
