"""Adapts tool schemas to a dialect: valid names, parameters as one plain object; unfit tools are left out with a
reason."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, TypeAlias

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import ToolSchema

Schema = dict[str, Any]

DEEPEST = 32
HASH = 8
REMEMBERED = 32
COMBINATORS = ("anyOf", "oneOf", "allOf")
# What the outermost object may not say besides unions; without it more is let through, which the tool then judges.
NOT_AT_THE_TOP = frozenset({"not", "enum"})
# Keywords whose value is a schema, a list of schemas, or schemas by name.
ONE = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"})
MANY = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
# What says nothing once references are replaced, and what an API without references does not know either.
UNSENT_INLINE = frozenset({"$defs", "definitions", "$schema"})
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")


class Unfit(ValueError):
    """A tool that a dialect cannot accept; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRules:
    """A dialect's rules for tools; every one requires an object without a top-level union as parameters, and an item
    type for lists.

    `longest_name` is in characters, of which all dialects accept letters, digits, `_` and `-`; where `letter_first`,
    the first is a letter or `_`. `inline`: `$ref` is not supported. `described`: a description may not be empty.
    """

    longest_name: int = 64
    letter_first: bool = False
    inline: bool = False
    described: bool = False

    def fits(self, name: str) -> bool:
        """Whether the name is valid."""
        begins = not self.letter_first or name[:1].isalpha() or name[:1] == "_"
        return 0 < len(name) <= self.longest_name and begins and not _UNSAFE.search(name)


PLAIN = ToolRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A tool that cannot be offered, with the reason."""

    name: str
    reason: str


Fitted: TypeAlias = tuple[tuple[ToolSchema, ...], tuple[SetAside, ...]]


def wire_name(name: str, rules: ToolRules) -> str:
    """The name if the dialect accepts it, otherwise its valid characters and a hash."""
    if rules.fits(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:HASH]
    safe = _UNSAFE.sub("_", name)[: rules.longest_name - HASH - 2]
    lead = "" if safe[:1].isalpha() or safe[:1] == "_" else "t"
    return f"{lead}{safe}_{digest}"


_remembered: dict[tuple[int, ToolRules], tuple[tuple[ToolSchema, ...], Fitted]] = {}


def fitted(tools: Iterable[ToolSchema], rules: ToolRules) -> Fitted:
    """The tools adapted to the dialect, in order, and those it cannot accept. Cached for the last few tool sets,
    which many conversations share."""
    given = tuple(tools)
    known = _remembered.get((id(given), rules))
    if known is not None and known[0] is given:
        return known[1]
    if len(_remembered) >= REMEMBERED:
        _remembered.clear()
    found = _fitted(given, rules)
    _remembered[id(given), rules] = (given, found)
    return found


def _fitted(tools: Iterable[ToolSchema], rules: ToolRules) -> Fitted:
    good: list[ToolSchema] = []
    aside: list[SetAside] = []
    for tool in tools:
        try:
            good.append(fit(tool, rules))
        except Unfit as error:
            aside.append(SetAside(name=tool.name, reason=str(error)))
    return tuple(good), tuple(aside)


def fit(tool: ToolSchema, rules: ToolRules) -> ToolSchema:
    """The tool adapted to the dialect. Raises `Unfit`."""
    if not tool.name:
        raise Unfit("it has no name")
    try:
        parameters = _Rewriting(rules, tool.parameters).whole()
    except (AttributeError, TypeError, RecursionError) as error:  # A word where a schema or a list should be.
        raise Unfit(f"its parameters are no JSON schema ({error})") from error
    try:
        msgspec.json.encode(parameters)
    except (TypeError, ValueError, RecursionError) as error:
        raise Unfit(f"its parameters are not JSON ({error})") from error
    description = tool.description or (tool.name if rules.described else "")
    return ToolSchema(name=wire_name(tool.name, rules), description=description, parameters=parameters)


class _Rewriting:
    """Rewrites one tool's parameters for a dialect."""

    def __init__(self, rules: ToolRules, parameters: Mapping[str, Any]) -> None:
        self._rules = rules
        self._given = parameters

    def whole(self) -> Schema:
        """An object without a union at its top."""
        rewritten = self._schema(self._at_the_top(self._given), ())
        rewritten = {key: value for key, value in _without_union(rewritten).items() if key not in NOT_AT_THE_TOP}
        if rewritten.setdefault("type", "object") != "object":
            raise Unfit(f"its parameters are of the type `{rewritten['type']}` instead of an object")
        rewritten.setdefault("properties", {})
        return rewritten

    def _at_the_top(self, schema: object) -> object:
        """The outermost object may not be a reference, also where references are known."""
        seen: set[object] = set()
        while isinstance(schema, Mapping) and "$ref" in schema and schema["$ref"] not in seen:
            seen.add(schema["$ref"])
            besides = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**self._found(schema["$ref"]), **besides}
        if isinstance(schema, Mapping) and "$ref" in schema:
            raise Unfit(f"its parameters refer to `{schema['$ref']}`, which refers to itself")
        return schema

    def _schema(self, schema: object, path: tuple[str, ...]) -> Schema:
        """`path` has an entry for each step down: the name of the reference that it followed, or nothing."""
        if len(path) > DEEPEST:
            raise Unfit(f"its parameters are nested more than {DEEPEST} deep")
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        if not isinstance(schema, Mapping):
            raise Unfit(f"its parameters hold `{str(schema)[:40]}` where a schema should be")
        if "$ref" in schema:
            return self._referred(schema, path)
        kept = (key for key in schema if not (self._rules.inline and key in UNSENT_INLINE))
        rewritten = {key: self._value(key, schema[key], (*path, "")) for key in kept}
        if _may_be_list(rewritten) and "items" not in rewritten and "prefixItems" not in rewritten:
            rewritten["items"] = {}
        return rewritten

    def _value(self, key: str, value: object, path: tuple[str, ...]) -> object:
        if key in ONE and not isinstance(value, bool):
            return self._schema(value, path)
        if key in MANY and isinstance(value, list):
            return [self._schema(one, path) for one in value]
        if key in NAMED and isinstance(value, Mapping):
            return {name: self._schema(one, path) for name, one in value.items()}
        return value

    def _referred(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Schema:
        name = schema["$ref"]
        target = self._found(name)
        if not self._rules.inline:
            return dict(schema)
        if name in path:  # what holds itself: from the second time on, any object
            return {"type": "object"}
        besides = {key: value for key, value in schema.items() if key != "$ref"}
        return self._schema({**target, **besides}, (*path, name))

    def _found(self, name: object) -> Mapping[str, Any]:
        """What a reference means: a place inside of these parameters, and nothing else."""
        if not isinstance(name, str) or not name.startswith("#"):
            raise Unfit(f"its parameters refer to `{name}`, which is elsewhere")
        found: object = self._given
        for step in name[1:].split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            raise Unfit(f"its parameters refer to `{name}`, which is not there")
        return found


def _may_be_list(schema: Schema) -> bool:
    kind = schema.get("type")
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def _without_union(schema: Schema) -> Schema:
    """One object for all that a union at the top may be: every property, and required what each requires."""
    for key in COMBINATORS:
        choices = [_without_union(choice) for choice in schema.get(key, [])]
        if not choices:
            continue
        if any("$ref" in choice or choice.get("type", "object") != "object" for choice in choices):
            raise Unfit(f"its parameters are `{key}` of what is no plain object")
        schema = {name: value for name, value in schema.items() if name != key}
        schema = _both(schema, reduce(_both if key == "allOf" else _either, choices))
    return schema


def _both(one: Schema, other: Schema) -> Schema:
    required = dict.fromkeys([*one.get("required", []), *other.get("required", [])])
    return _object(one, other, list(required))


def _either(one: Schema, other: Schema) -> Schema:
    return _object(one, other, [name for name in one.get("required", []) if name in other.get("required", [])])


def _object(one: Schema, other: Schema, required: list[str]) -> Schema:
    """Both with the properties of both; the first is right where they differ."""
    merged = {key: value for key, value in {**other, **one}.items() if key != "required"}
    merged["properties"] = {**other.get("properties", {}), **one.get("properties", {})}
    return merged | ({"required": required} if required else {})
