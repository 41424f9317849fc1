"""Converts JSON Schema into the subset that Gemini accepts for a function's parameters; the rest goes into
descriptions.

The subset: https://ai.google.dev/api/caching#Schema. `$ref`, `const`, `oneOf`, `allOf`, lists of types and
`additionalProperties` are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_agent.providers.pieces import json_bytes

Schema = Mapping[str, Any]

KEPT = (
    "title",
    "description",
    "pattern",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
)
FORMATS = frozenset({"date-time", "int32", "int64", "float", "double"})
ANYTHING = ("string", "number", "boolean", "object")


def gemini_schema(schema: Schema) -> dict[str, Any]:
    """The converted schema of a function's parameters, with `$ref` resolved."""
    for part in schema.get("allOf", ()):
        schema = _merged(schema, part)
    plain: dict[str, Any] = {name: schema[name] for name in KEPT if name in schema}
    if schema.get("format") in FORMATS:
        plain["format"] = schema["format"]
    kinds = _kinds(schema)
    choices = _choices(schema, kinds)
    real = [choice for choice in choices if not _is_null(choice)]
    if len(real) < len(choices) or "null" in kinds:
        plain["nullable"] = True
    if real:
        return _one_of(plain, [_any(choice) for choice in real])
    kind = next((kind for kind in kinds if kind != "null"), "string" if plain.get("nullable") else "")
    if not kind:
        return {**_anything(), **plain}
    plain["type"] = kind.upper()
    _fill(plain, schema)
    return _with_values(plain, schema)


def _any(schema: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    return gemini_schema(schema) if isinstance(schema, Mapping) else _anything()


def _choices(schema: Schema, kinds: list[str]) -> list[Any]:
    """What it may be one of: said so, or by several types."""
    choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if choices or len([kind for kind in kinds if kind != "null"]) < 2:
        return choices
    alone = {name: schema[name] for name in schema if name not in ("title", "description", "default")}
    return [{**alone, "type": kind} for kind in kinds]


def _one_of(plain: dict[str, Any], told: list[dict[str, Any]]) -> dict[str, Any]:
    if len(told) == 1:
        return {**told[0], **plain}
    described: dict[str, Any] = {name: plain[name] for name in ("title", "description", "nullable") if name in plain}
    return {**described, "anyOf": told}


def _fill(plain: dict[str, Any], schema: Schema) -> None:
    """What a list and an object hold."""
    if plain["type"] == "ARRAY":
        items = schema.get("items", schema.get("prefixItems"))
        if isinstance(items, list):
            items = {"anyOf": items} if items else None
        plain["items"] = _any(items)
    properties = schema.get("properties")
    if plain["type"] == "OBJECT" and properties:
        plain["properties"] = {name: _any(inner) for name, inner in properties.items()}
        required = [name for name in schema.get("required", ()) if name in properties]
        if required:
            plain["required"] = required


def _kinds(schema: Schema) -> list[str]:
    """The types that a schema names, or that follow from what it holds."""
    kind = schema.get("type")
    if isinstance(kind, list):
        return [str(one) for one in kind]
    if kind:
        return [str(kind)]
    values = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
    if values:
        return list(dict.fromkeys(_kind_of(value) for value in values))
    if "properties" in schema or "additionalProperties" in schema:
        return ["object"]
    return ["array"] if "items" in schema or "prefixItems" in schema else []


def _kind_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "object"


def _with_values(plain: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """The values that are allowed: as `enum` for texts, which is all that it takes, otherwise in words."""
    values = [schema["const"]] if "const" in schema else list(schema.get("enum", ()))
    if None in values:
        plain["nullable"] = True
        values = [value for value in values if value is not None]
    if values and plain["type"] == "STRING":
        plain["enum"] = [str(value) for value in values]
    elif values:
        plain = _said(plain, f"One of: {', '.join(json_bytes(value).decode() for value in values)}.")
    if "default" in schema and schema["default"] is not None:
        plain = _said(plain, f"Default: {json_bytes(schema['default']).decode()}.")
    return plain


def _said(plain: dict[str, Any], words: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    if not words:
        return plain
    before = plain.get("description")
    return {**plain, "description": f"{before} {words}" if before else str(words)}


def _merged(schema: Schema, part: Schema) -> Schema:
    """Both schemas at once, as far as objects go."""
    properties = {**part.get("properties", {}), **schema.get("properties", {})}
    required = list(dict.fromkeys([*schema.get("required", ()), *part.get("required", ())]))
    merged = {**part, **{name: schema[name] for name in schema if name != "allOf"}}
    return merged | ({"properties": properties} if properties else {}) | ({"required": required} if required else {})


def _is_null(schema: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def _anything() -> dict[str, Any]:
    return {"anyOf": [{"type": kind.upper()} for kind in ANYTHING], "nullable": True}
