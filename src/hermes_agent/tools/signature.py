"""Function signatures as tool contracts: generates the JSON schema and validates arguments against it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from textwrap import dedent
from typing import Any, get_type_hints

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import BadArguments
from hermes_agent.core.tool import CallContext

CONTEXT = "context"
_ROOT = " - at `$`"
_NAMED_ONCE = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Unusable(ValueError):
    """A Python function cannot be a tool: no schema can be generated for it; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A tool function's contract; `parameters` is the JSON schema. `context` is the parameter that takes the
    `CallContext` (empty: none)."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    shape: type[msgspec.Struct]
    context: str

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validate arguments and fill in defaults.

        Repairs common mistakes of models: numbers and booleans as text, lists and objects as JSON text, numbers
        where text is expected, null for an omitted parameter. Raises `BadArguments` with the schema path.
        """
        given = {key: value for key, value in arguments.items() if not self._left_out(key, value)}
        mended = {key: self._mend(key, value) for key, value in given.items()}
        try:
            record = msgspec.convert(mended, self.shape, strict=False)
        except msgspec.ValidationError as error:
            raise self._misfit(str(error), mended) from error
        return {name: getattr(record, name) for name in self.shape.__struct_fields__}

    def _left_out(self, key: str, value: object) -> bool:
        return value is None and key not in self.parameters.get("required", ()) and key in self._properties

    def _mend(self, key: str, value: object) -> object:
        kind = self._properties.get(key, {}).get("type", "")
        match value:
            case bool():
                return value
            case int() | float() if kind == "string":
                return str(value)
            case str() if kind in ("array", "object") and value.lstrip()[:1] in ("[", "{"):
                return _json_or_same(value)
            case _:
                return value

    @property
    def _properties(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.parameters["properties"]
        return found

    def _misfit(self, message: str, arguments: Mapping[str, Any]) -> BadArguments:
        strangers = [key for key in arguments if key not in self._properties]
        near = get_close_matches(strangers[0], self._properties, 1) if strangers else []
        known = ", ".join(f"`{name}`" for name in self._properties) or "none"
        meant = f"Did you mean `{near[0]}`? " if near else ""
        where = "" if " - at `$" in message else _ROOT
        return BadArguments(f"{self.name}: {message}{where}", hint=f"{meant}Parameters: {known}.")


def signature_of(function: Callable[..., Any], *, name: str = "", description: str = "") -> Signature:
    """Read a function's contract: parameters from annotations, descriptions from its docstring's `Args:`.

    Raises `Unusable` for `*args`, positional-only parameters, annotations that name no JSON type, and a described
    parameter that does not exist.
    """
    called = name or function.__name__
    text, described = _docstring(inspect.getdoc(function) or "")
    try:
        hints = get_type_hints(function, include_extras=True)
        taken = [parameter for parameter in inspect.signature(function).parameters.values() if parameter.name != "self"]
        context = next((each.name for each in taken if hints.get(each.name) is CallContext), CONTEXT)
        wanted = [parameter for parameter in taken if parameter.name != context]
        shape = _shape(called, wanted, hints)
        parameters = _schema(wanted, hints, described)
    except (TypeError, NameError, ValueError) as error:
        raise Unusable(f"{called}: {error}") from error
    return Signature(
        name=called,
        description=description or text,
        parameters=parameters,
        shape=shape,
        context=context if len(wanted) < len(taken) else "",
    )


def _shape(name: str, wanted: list[inspect.Parameter], hints: Mapping[str, Any]) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for parameter in wanted:
        if parameter.kind not in _NAMED_ONCE:
            raise ValueError(f"`{parameter}` cannot be given by name")
        kind = hints.get(parameter.name, Any)
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, kind))
        else:
            fields.append((parameter.name, kind, parameter.default))
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


def _schema(wanted: list[inspect.Parameter], hints: Mapping[str, Any], described: Mapping[str, str]) -> dict[str, Any]:
    strangers = set(described) - {parameter.name for parameter in wanted}
    if strangers:
        raise ValueError(f"its docstring describes `{sorted(strangers)[0]}`, which it does not take")
    properties: dict[str, Any] = {}
    for parameter in wanted:
        entry = _entry(hints.get(parameter.name, Any))
        if parameter.default is None:
            entry = _without_null(entry)
        if described.get(parameter.name):
            entry["description"] = described[parameter.name]
        if _worth_saying(parameter.default):
            entry["default"] = parameter.default
        properties[parameter.name] = entry
    required = [parameter.name for parameter in wanted if parameter.default is inspect.Parameter.empty]
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def _worth_saying(default: object) -> bool:
    """Whether to state a default; empty, false and None are omitted, as each costs tokens."""
    return default is not inspect.Parameter.empty and bool(default) and isinstance(default, (int, float, str))


def _entry(kind: object) -> dict[str, Any]:
    (schema,), components = msgspec.json.schema_components([kind])
    inlined = _inlined(schema, components)
    assert isinstance(inlined, dict)
    return inlined


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without a null that only means "omitted": shorter, and `check` accepts null anyway."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return rest | kinds[0] if len(kinds) == 1 else schema


def _inlined(schema: object, components: Mapping[str, Any]) -> object:
    """The schema without references and titles: shorter, and some providers do not support `$ref`."""
    match schema:
        case {"$ref": str() as reference}:
            return _inlined(components[reference.rpartition("/")[2]], components)
        case dict():
            unsaid = {"title", "description"} if "properties" in schema else {"title"}  # a class's docstring is ours
            kept = {key: value for key, value in schema.items() if key not in unsaid or not isinstance(value, str)}
            if all(isinstance(value, str) for value in kept.get("enum", [0])):
                kept = {"type": "string"} | kept  # some providers insist
            return {key: _inlined(value, components) for key, value in kept.items()}
        case list():
            return [_inlined(item, components) for item in schema]
        case _:
            return schema


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into the description and the `Args:` by parameter; lines of a paragraph are joined."""
    head, _, tail = text.partition("\nArgs:\n")
    described: dict[str, str] = {}
    current = ""
    for line in dedent(tail).splitlines():
        if line[:1] not in ("", " "):
            current, _, first = line.partition(":")
            described[current] = first.strip()
        elif current:
            described[current] = f"{described[current]} {line.strip()}".strip()
    paragraphs = (" ".join(part.split()) if "\n-" not in part else part.strip() for part in head.split("\n\n"))
    return "\n".join(part for part in paragraphs if part), described


def _json_or_same(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
