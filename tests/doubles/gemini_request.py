"""Reads a Gemini generateContent request, and refuses what the real service refuses.

The rules are those of https://ai.google.dev/api/generate-content and of the guides to function calling, thinking and
thought signatures; the sentences are the service's own.
"""

from __future__ import annotations

import base64
import hashlib
import json
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

# A signature for a call that no Gemini made: https://ai.google.dev/gemini-api/docs/thought-signatures
ANY_SIGNATURE = "skip_thought_signature_validator"
LEVELS = frozenset({"MINIMAL", "LOW", "MEDIUM", "HIGH"})
REQUEST_FIELDS = frozenset(
    {"model", "contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "generationConfig"}
    | {"cachedContent", "labels"}
)
PART_KINDS = frozenset({"text", "inlineData", "fileData", "functionCall", "functionResponse"})
SCHEMA_FIELDS = frozenset(
    {"type", "format", "title", "description", "nullable", "enum", "items", "maxItems", "minItems", "properties"}
    | {"required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf"}
    | {"propertyOrdering", "default", "minimum", "maximum"}
)
FREE = frozenset({"args", "response", "default", "example", "labels", "parametersJsonSchema"})
TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})


def read_gemini(body: bytes, model: str, *, stream: bool) -> Heard:
    """The question in a request body. Raises `RequestRefused` with the service's own status and words."""
    try:
        plain = _camel(json.loads(body))
    except ValueError as error:
        raise RequestRefused("Invalid JSON payload received.") from error
    for name in plain:
        if name not in REQUEST_FIELDS:
            raise RequestRefused(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
    contents = plain.get("contents")
    if not contents:
        raise RequestRefused("* GenerateContentRequest.contents: contents is not specified")
    config = plain.get("generationConfig", {})
    tools = _tools(plain)
    _check_thinking(config.get("thinkingConfig", {}))
    _check_contents(contents)
    _check_signatures(contents, wanted="gemini-3" in model)
    instruction = plain.get("systemInstruction", {})
    return Heard(
        model=model,
        messages=tuple(message for entry in contents for message in _messages(entry)),
        system="".join(part["text"] for part in instruction.get("parts", ())),
        tools=tools,
        use_tools=plain.get("toolConfig", {}).get("functionCallingConfig", {}).get("mode") != "NONE",
        stream=stream,
        max_output=config.get("maxOutputTokens"),
        effort=_effort(config.get("thinkingConfig", {})),
        prompt=prompt_text(instruction, plain.get("tools", ()), *contents),
    )


def sign(content: str) -> str:
    """The signature under a part: bound to what the part says, so that it cannot be moved to another one."""
    return base64.b64encode(hashlib.sha256(b"thought:" + content.encode("utf-8", "surrogatepass")).digest()).decode()


def signed_call(name: str, arguments: Json) -> str:
    """The signature under a function call."""
    return sign(f"{name}{json.dumps(arguments, sort_keys=True)}")


def _camel(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The names of fields as protobuf's JSON spells them: it takes `mime_type` for `mimeType` too. What is a map or
    free has names of its own."""
    if isinstance(value, list):
        return [_camel(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    plain = {}
    for name, entry in value.items():
        first, *others = name.split("_")
        named = first + "".join(other.capitalize() for other in others)
        if named == "properties":
            plain[named] = {own: _camel(schema) for own, schema in entry.items()}
        else:
            plain[named] = entry if named in FREE else _camel(entry)
    return plain


def _effort(thinking: Json) -> str:
    level, budget = thinking.get("thinkingLevel"), thinking.get("thinkingBudget")
    return str(level or "").lower() or ("" if budget is None else str(budget))


def _check_thinking(thinking: Json) -> None:
    level = thinking.get("thinkingLevel")
    if level is not None and "thinkingBudget" in thinking:
        raise RequestRefused("You can only set only one of thinking budget and thinking level.")
    if level is not None and str(level).upper() not in LEVELS:
        raise RequestRefused(f"Invalid value at 'generation_config.thinking_config.thinking_level', \"{level}\"")


def _check_contents(contents: list[Json]) -> None:
    """Roles are known, no part is empty, and a turn of calls is followed by as many responses."""
    open_calls: list[str] = []
    before = ""
    for index, entry in enumerate(contents):
        if entry.get("role", "user") not in ("user", "model"):
            raise RequestRefused("Please use a valid role: user, model.")
        parts = entry.get("parts", ())
        if not parts:
            raise RequestRefused(f"* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty.")
        for place, part in enumerate(parts):
            _check_part(part, f"GenerateContentRequest.contents[{index}].parts[{place}]")
        answers = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        _check_answers(open_calls, answers)
        open_calls = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        if open_calls and before not in ("user", "function"):
            raise RequestRefused(
                "Please ensure that function call turn comes immediately after a user turn or after a function response"
                " turn."
            )
        before = "function" if answers else entry.get("role", "user")
    _check_answers(open_calls, [])


def _check_part(part: Json, place: str) -> None:
    kinds = PART_KINDS & part.keys()
    if len(kinds) != 1:
        raise RequestRefused(f"* {place}.data: required oneof field 'data' must have one initialized field")
    if "functionCall" in part and not isinstance(part["functionCall"].get("args", {}), dict):
        raise RequestRefused(
            f"Invalid value at '{place}.function_call.args' (type.googleapis.com/google.protobuf.Struct)"
        )
    if "functionResponse" in part and not isinstance(part["functionResponse"].get("response"), dict):
        raise RequestRefused(f"* {place}.function_response.response: must be specified")


def _check_answers(open_calls: list[str], answers: list[str]) -> None:
    if answers and not open_calls:
        raise RequestRefused("Please ensure that function response turn comes immediately after a function call turn.")
    if len(answers) != len(open_calls):
        raise RequestRefused(
            "Please ensure that the number of function response parts is equal to the number of function call parts of"
            " the function call turn."
        )


def _check_signatures(contents: list[Json], *, wanted: bool) -> None:
    """Every signature is this service's own; each step of the current turn has one under its first call, where the
    model wants it."""
    for entry in contents:
        for part in entry["parts"]:
            _check_signature(part)
    current = max((place for place, entry in enumerate(contents) if _said(entry)), default=0)
    for place, entry in enumerate(contents):
        calls = [part for part in entry["parts"] if "functionCall" in part]
        if wanted and place > current and calls and "thoughtSignature" not in calls[0]:
            name = calls[0]["functionCall"]["name"]
            raise RequestRefused(
                f"Function call is missing a thought_signature in functionCall parts. Function call"
                f" `default_api:{name}`, position {place + 1}."
            )


def _said(entry: Json) -> bool:
    """Whether this content is a person's, and no function response."""
    return entry.get("role", "user") == "user" and all("functionResponse" not in part for part in entry["parts"])


def _check_signature(part: Json) -> None:
    signature = part.get("thoughtSignature")
    if signature in (None, ANY_SIGNATURE):
        return
    call = part.get("functionCall")
    own = signed_call(call["name"], call.get("args", {})) if call else sign(part.get("text", ""))
    # JSON carries bytes in either alphabet of base64.
    if signature.replace("-", "+").replace("_", "/") != own:
        raise RequestRefused("Corrupted thought signature.")


def _tools(plain: Json) -> tuple[ToolSchema, ...]:
    return tuple(
        _tool(entry, f"tools[{group}].function_declarations[{index}].parameters")
        for group, tool in enumerate(plain.get("tools", ()))
        for index, entry in enumerate(tool.get("functionDeclarations", ()))
    )


def _tool(entry: Json, place: str) -> ToolSchema:
    schema = entry.get("parameters")
    if schema is not None:
        check_schema(schema, place)
        if not schema.get("properties"):
            raise RequestRefused(f"* GenerateContentRequest.{place}.properties: should be non-empty for OBJECT type")
    plain = entry.get("parametersJsonSchema")
    if plain is not None:
        check_json_schema(plain, f"{place}_json_schema")
        if schema is not None:
            raise RequestRefused(f"{place} and parameters_json_schema are mutually exclusive.")
    return ToolSchema(name=entry["name"], description=entry.get("description", ""), parameters=schema or plain or {})


def check_json_schema(schema: Json, place: str) -> None:
    """Raises `RequestRefused` for what `parametersJsonSchema` does not take: it is any JSON, so no unknown name is
    refused but `$schema`; the outermost schema is an object, and a list says what it holds."""
    if schema.get("type") != "object" or not isinstance(schema.get("properties", {}), dict):
        raise RequestRefused(f"* GenerateContentRequest.{place}: must describe an object")
    _check_inside(schema, place)


def _check_inside(schema: object, place: str) -> None:
    if isinstance(schema, list):
        for inner in schema:
            _check_inside(inner, place)
    if isinstance(schema, dict):
        if isinstance(schema.get("$schema"), str):
            raise RequestRefused(f"Invalid JSON payload received. Unknown name \"$schema\" at '{place}'")
        if schema.get("type") == "array" and not {"items", "prefixItems"} & schema.keys():
            raise RequestRefused(f"* GenerateContentRequest.{place}.items: missing field.")
        for name, inner in schema.items():
            _check_inside(inner, f"{place}.{name}")


def check_schema(schema: Json, place: str) -> None:
    """Raises `RequestRefused` for what the service's subset of OpenAPI schemas does not hold."""
    for name in schema:
        if name not in SCHEMA_FIELDS:
            raise RequestRefused(
                f"Invalid JSON payload received. Unknown name \"{name}\" at '{place}': Cannot find field."
            )
    kind = schema.get("type")
    if kind is not None and str(kind).upper() not in TYPES:
        raise RequestRefused(f"Invalid value at '{place}.type' (type.googleapis.com/google.ai.v1beta.Type), {kind!r}")
    if kind is None and "anyOf" not in schema:
        raise RequestRefused(f"* GenerateContentRequest.{place}.type: must be specified")
    if any(not isinstance(value, str) for value in schema.get("enum", ())):
        raise RequestRefused(f"Invalid value at '{place}.enum[0]' (TYPE_STRING)")
    for name, inner in schema.get("properties", {}).items():
        check_schema(inner, f"{place}.properties[{name}]")
    missing = [name for name in schema.get("required", ()) if name not in schema.get("properties", {})]
    if missing:
        raise RequestRefused(f"* GenerateContentRequest.{place}.required[0]: property is not defined")
    if str(kind).upper() == "ARRAY" and "items" not in schema:
        raise RequestRefused(f"* GenerateContentRequest.{place}.items: missing field.")
    for inner in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        check_schema(inner, f"{place}.items")


def _messages(entry: Json) -> list[Message]:
    """One content as neutral messages: its function responses become messages of their own."""
    if entry.get("role") == "model":
        return [Message(role=Role.ASSISTANT, parts=tuple(_part(part, Origin.MODEL) for part in entry["parts"]))]
    answers = [_result(part["functionResponse"]) for part in entry["parts"] if "functionResponse" in part]
    said = tuple(_part(part, Origin.OWNER) for part in entry["parts"] if "functionResponse" not in part)
    messages = [Message(role=Role.TOOL, parts=(answer,)) for answer in answers]
    return [*messages, Message(role=Role.USER, parts=said)] if said else messages


def _result(answer: Json) -> ToolResult:
    response = answer["response"]
    failed = "error" in response
    words = response.get("error" if failed else "output", "")
    attached = [_part(part, Origin.TOOL) for part in answer.get("parts", ())]
    parts = [Text(text=words, origin=Origin.TOOL), *(part for part in attached if isinstance(part, Image | File))]
    return ToolResult(call_id=answer.get("id", ""), name=answer["name"], parts=tuple(parts), is_error=failed)


def _part(part: Json, origin: Origin) -> Part:
    if "functionCall" in part:
        call = part["functionCall"]
        return ToolCall(id=call.get("id", ""), name=call["name"], arguments=call.get("args", {}))
    if "inlineData" in part:
        return _blob(part["inlineData"], origin)
    if "fileData" in part:
        return Image(url=part["fileData"]["fileUri"], origin=origin)
    if part.get("thought"):
        return Thinking(text=part["text"], opaque=part.get("thoughtSignature", ""))
    return Text(text=part["text"], origin=origin)


def _blob(blob: Json, origin: Origin) -> Image | File:
    kind = blob["mimeType"]
    if kind.startswith("image/"):
        return Image(media_type=kind, data=blob["data"], origin=origin)
    return File(name=blob.get("displayName", ""), media_type=kind, data=blob["data"], origin=origin)
