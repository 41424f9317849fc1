"""Reads an OpenAI Responses request, and refuses what the real service refuses.

The rules are those of https://platform.openai.com/docs/api-reference/responses/create; the words are the service's.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hermes_agent.core.dataclass import dataclass
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
from hermes_agent.providers.demo.openai_request import refused_parameters
from hermes_agent.providers.demo.script import Heard, RequestRefused, prompt_text

Json = Mapping[str, Any]

TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
LEAST_OUTPUT = 16
SEALED = b"sealed:"
OUTPUT = frozenset({"reasoning", "function_call"})
KINDS = {
    "user": frozenset({"input_text", "input_image", "input_file"}),
    "assistant": frozenset({"output_text", "refusal"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesStyle:
    """Where services of this protocol differ. `signed_in`: as behind the sign-in with ChatGPT, which keeps nothing,
    wants instructions and takes no limit of output."""

    created: int = 1_700_000_000
    signed_in: bool = False


def read_responses(plain: Json, items: Sequence[Json]) -> Heard:
    """The question in a request whose conversation is `items`. Raises `RequestRefused` with the service's own status
    and words."""
    if not items:
        raise _refused('One of "input" or "previous_response_id" must be provided.')
    _check_pairs(items)
    names: dict[str, str] = {}
    return Heard(
        model=plain["model"],
        messages=tuple(_messages(items, names)),
        system=plain.get("instructions") or "",
        tools=tuple(_tool(entry) for entry in plain.get("tools", ())),
        use_tools=plain.get("tool_choice") != "none",
        stream=bool(plain.get("stream")),
        max_output=plain.get("max_output_tokens"),
        effort=str((plain.get("reasoning") or {}).get("effort") or ""),
        prompt=prompt_text(plain.get("tools", ()), plain.get("instructions"), *items),
    )


def parsed(body: bytes, style: ResponsesStyle) -> Json:
    """The request as an object, its plain fields checked."""
    try:
        plain = json.loads(body)
    except ValueError as error:
        raise _refused("We could not parse the JSON body of your request.") from error
    if not isinstance(plain, dict) or not plain.get("model"):
        raise _refused("Missing required parameter: 'model'.", code="missing_required_parameter")
    limit = plain.get("max_output_tokens")
    if limit is not None and limit < LEAST_OUTPUT:
        raise _refused(
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {LEAST_OUTPUT}, but got"
            f" {limit} instead."
        )
    if style.signed_in:
        _check_signed_in(plain)
    return plain


def given_items(plain: Json) -> list[Json]:
    """The items of `input`, where a text stands for one message of the user's."""
    given = plain.get("input", [])
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
    return [_item(entry, place) for place, entry in enumerate(given)]


def seal(thought: str) -> str:
    """Reasoning as the service encrypts it; it refuses what it did not encrypt."""
    return base64.b64encode(SEALED + thought.encode()).decode()


def _check_signed_in(plain: Json) -> None:
    if plain.get("store") is not False:
        raise _refused("Store must be set to false")
    if not plain.get("instructions"):
        raise _refused("Instructions are required")
    for name in ("max_output_tokens", "previous_response_id"):
        if name in plain:
            raise _refused(f"Unsupported parameter: {name}")


def _item(entry: Json, place: int) -> Json:
    kind = entry.get("type", "message")
    match kind:
        case "message":
            return _message_item(entry, place)
        case "reasoning":
            if not isinstance(entry.get("summary"), list):
                raise _refused(f"Missing required parameter: 'input[{place}].summary'.")
            _check_sealed(entry)
        case "function_call":
            if not isinstance(entry["arguments"], str):
                raise _refused(f"Invalid type for 'input[{place}].arguments': expected a string.")
        case "function_call_output":
            if not isinstance(entry.get("output"), str | list):
                raise _refused(f"Missing required parameter: 'input[{place}].output'.")
        case _:
            raise _refused(f"Invalid value: '{kind}'. input[{place}].type")
    return entry


def _message_item(entry: Json, place: int) -> Json:
    content = entry.get("content")
    if isinstance(content, str):
        kind = "output_text" if entry["role"] == "assistant" else "input_text"
        content = [{"type": kind, "text": content}]
    if not content:
        raise _refused(f"Invalid 'input[{place}].content': empty array. Expected an array with minimum length 1.")
    allowed = KINDS["assistant" if entry["role"] == "assistant" else "user"]
    for part in content:
        if part["type"] not in allowed:
            raise _refused(f"Invalid value: '{part['type']}'. Supported values are: {sorted(allowed)}. input[{place}]")
    return {"type": "message", "role": entry["role"], "content": content}


def _check_sealed(entry: Json) -> None:
    sealed = entry.get("encrypted_content")
    if sealed is None:
        raise _refused(
            f"Item with id '{entry.get('id')}' not found. Items are not persisted when `store` is set to false."
        )
    try:
        ours = base64.b64decode(sealed, validate=True).startswith(SEALED)
    except ValueError:
        ours = False
    if not ours:
        raise _refused(f"The encrypted content {sealed[:4]} could not be verified.", code="invalid_encrypted_content")


def _check_pairs(items: Sequence[Json]) -> None:
    """Every call has its output somewhere after it, and every output its call before it."""
    called: list[str] = []
    answered: list[str] = []
    for item in items:
        if item["type"] == "function_call":
            called.append(item["call_id"])
        elif item["type"] == "function_call_output":
            if item["call_id"] not in called:
                raise _refused(f"No tool call found for function call output with call_id {item['call_id']}.")
            answered.append(item["call_id"])
    for call in called:
        if call not in answered:
            raise _refused(f"No tool output found for function call {call}.")


def _tool(entry: Json) -> ToolSchema:
    name = str(entry.get("name", ""))
    if entry.get("type") != "function" or not TOOL_NAME.match(name):
        raise _refused(f"Invalid 'tools[0].name': string does not match pattern. Expected {TOOL_NAME.pattern}.")
    parameters = entry.get("parameters") or {}
    # The service is strict unless it is told not to be.
    if entry.get("strict", True) and parameters.get("additionalProperties") is not False:
        raise _refused(
            f"Invalid schema for function '{name}': In context=(), 'additionalProperties' is required to be supplied"
            " and to be false.",
            code="invalid_function_parameters",
        )
    if wrong := refused_parameters(parameters):
        raise _refused(f"Invalid schema for function '{name}': {wrong}", code="invalid_function_parameters")
    return ToolSchema(name=name, description=entry.get("description") or "", parameters=parameters)


def _messages(items: Sequence[Json], names: dict[str, str]) -> Iterator[Message]:
    """The items as neutral messages: those of the model that stand together are one."""
    spoken: list[Part] = []
    for item in items:
        if item["type"] in OUTPUT or item.get("role") == "assistant":
            spoken += _spoken(item)
            names.update({item["call_id"]: item["name"]} if item["type"] == "function_call" else {})
            continue
        if spoken:
            yield Message(role=Role.ASSISTANT, parts=tuple(spoken))
            spoken = []
        if item["type"] == "function_call_output":
            yield Message(role=Role.TOOL, parts=(_result(item, names),))
        else:
            yield Message(role=Role.USER, parts=tuple(_part(part, Origin.OWNER) for part in item["content"]))
    if spoken:
        yield Message(role=Role.ASSISTANT, parts=tuple(spoken))


def _spoken(item: Json) -> list[Part]:
    match item["type"]:
        case "reasoning":
            words = "\n\n".join(part["text"] for part in item["summary"])
            return [Thinking(text=words, opaque=item["encrypted_content"], redacted=not words)]
        case "function_call":
            return [_call(item)]
        case _:
            return [Text(text=part.get("text") or part.get("refusal") or "") for part in item["content"]]


def _call(item: Json) -> ToolCall:
    try:
        arguments = json.loads(item["arguments"])
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return ToolCall(id=item["call_id"], name=item["name"], arguments={}, broken=item["arguments"])
    return ToolCall(id=item["call_id"], name=item["name"], arguments=arguments)


def _result(item: Json, names: Mapping[str, str]) -> ToolResult:
    output = item["output"]
    content = [{"type": "input_text", "text": output}] if isinstance(output, str) else output
    parts = tuple(_part(part, Origin.TOOL) for part in content)
    return ToolResult(call_id=item["call_id"], name=names.get(item["call_id"], ""), parts=parts)


def _part(part: Json, origin: Origin) -> Text | Image | File:
    match part["type"]:
        case "input_text":
            return Text(text=part["text"], origin=origin)
        case "input_image":
            head, comma, data = str(part["image_url"]).partition(",")
            if head.startswith("data:") and comma:
                return Image(media_type=head.removeprefix("data:").split(";")[0], data=data, origin=origin)
            return Image(url=part["image_url"], origin=origin)
        case "input_file":
            head, _, data = str(part["file_data"]).partition(",")
            media_type = head.removeprefix("data:").split(";")[0]
            return File(name=part.get("filename", ""), media_type=media_type, data=data, origin=origin)
        case other:
            raise _refused(f"Invalid value: '{other}'. Supported values are: {sorted(KINDS['user'])}.")


def _refused(message: str, *, code: str = "") -> RequestRefused:
    return RequestRefused(message, code=code)
