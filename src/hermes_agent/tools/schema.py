"""Builds `Tool` objects and their JSON Schemas from decorated methods and plain functions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any, get_type_hints

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import BadArguments
from hermes_agent.core.messages import Origin, Text, ToolSchema
from hermes_agent.core.tool import MARK, Answer, CallContext, CallFacts, Quarantined, Tool, ToolMark, Touched
from hermes_agent.host.paths import followed
from hermes_agent.host.tasks import in_own_thread

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


SUMMARY_CHARS = 100
# What people call capabilities beside their own names.
CAPABILITY_WORDS = {
    "network": Capability.NET,
    "internet": Capability.NET,
    "web": Capability.NET,
    "read": Capability.FS_READ,
    "write": Capability.FS_WRITE,
    "filesystem": Capability.FS_WRITE,
    "shell": Capability.EXEC,
    "execute": Capability.EXEC,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTool:
    """A `Tool` made from a function: its signature gives the schema, its decorator the facts."""

    signature: Signature
    mark: ToolMark
    call: Callable[..., Awaitable[object]]

    @property
    def schema(self) -> ToolSchema:
        found = self.signature
        return ToolSchema(name=found.name, description=found.description, parameters=found.parameters)

    @property
    def needs(self) -> frozenset[Capability]:
        return frozenset(self.mark.needs)

    @property
    def core(self) -> bool:
        """Whether the prompt lists it; other tools are found with `find_tools`."""
        return self.mark.core

    def facts(self, arguments: Mapping[str, Any], workspace: str) -> CallFacts:
        checked = self.signature.check(arguments)
        effect = Effect.READS if _only_reads(self.mark.reads_when, checked) else self.mark.effect
        paths = _paths(self.mark.paths, checked, workspace) if self.mark.paths else None
        summary = _summary(self.signature.name, checked)
        return CallFacts(
            effect=effect, paths=paths, summary=summary, depends_on=self.mark.depends_on, origin=self.mark.origin
        )

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> Answer:
        checked = self.signature.check(arguments)
        if self.signature.context:
            checked[self.signature.context] = context
        return as_answer(await self.call(**checked), self.mark.origin)


Collected = tuple[tuple[Tool, ...], tuple[Quarantined, ...]]


def collect(sources: Iterable[object]) -> Collected:
    """The tools of these objects, in order: decorated methods or functions, or ready `Tool` objects.

    A tool without a valid schema is quarantined with the reason; the others stay.
    """
    tools: list[Tool] = []
    aside: list[Quarantined] = []
    for source in sources:
        for name, function in _marked(source):
            try:
                tools.append(_bind(function))
            except Unusable as error:
                aside.append(Quarantined(name=name, reason=str(error)))
        if isinstance(getattr(source, "schema", None), ToolSchema):
            tools.append(source)  # type: ignore[arg-type]  # a `Tool` by its shape
    return tuple(tools), tuple(aside)


def from_function(
    name: str,
    function: Callable[..., object],
    description: str = "",
    capabilities: Iterable[str] = (),
    *,
    effect: Effect = Effect.WRITES,
    depends_on: Iterable[str] = (),
) -> Tool:
    """Make a tool from any function. A sync one runs in a thread; its result becomes text, or JSON if it is not text.

    `capabilities` are names such as `net`, `fs.read` or synonyms (`network`). Without an `effect` it counts as a
    write: runs alone, and is never retried. It runs only once each tool in `depends_on` has answered. Raises
    `Unusable` with the reason.
    """
    mark = ToolMark(
        effect=effect,
        needs=tuple(map(capability_of, capabilities)),
        paths=(),
        reads_when="",
        name=name,
        core=True,
        depends_on=tuple(depends_on),
    )
    signature = signature_of(function, name=name, description=description)
    return BoundTool(signature=signature, mark=mark, call=_awaitable(function))


def as_answer(value: object, origin: Origin = Origin.TOOL) -> Answer:
    """Convert a function's result to an answer."""
    match value:
        case Answer():
            return value
        case None:
            return said("Done.", Origin.RUNTIME)
        case str():
            return said(value, origin)
        case _:
            return said(msgspec.json.encode(value, enc_hook=repr).decode(), origin)


def said(text: str, origin: Origin, *, is_error: bool = False) -> Answer:
    """A text-only answer; `origin` says where its bytes came from."""
    return Answer(parts=(Text(text=text, origin=origin),), is_error=is_error)


def resolve(path: str, workspace: str) -> str:
    """The real absolute path of a path argument, so that two names of one file are equal. Raises `ToolError`."""
    if "\0" in path:
        return path
    named = str(Path(path).expanduser()) if path.startswith("~") else path
    return followed(named if named.startswith("/") else f"{workspace}/{named}")


def _marked(source: object) -> list[tuple[str, Callable[..., Awaitable[object]]]]:
    if inspect.isfunction(source) or inspect.ismethod(source):
        return [(source.__name__, source)] if hasattr(source, MARK) else []
    names = [
        name for kind in reversed(type(source).__mro__) for name, member in vars(kind).items() if hasattr(member, MARK)
    ]
    return [(name, getattr(source, name)) for name in dict.fromkeys(names)]


def _bind(function: Callable[..., Awaitable[object]]) -> BoundTool:
    mark: ToolMark = getattr(function, MARK)
    signature = signature_of(function, name=mark.name)
    known = set(signature.shape.__struct_fields__)
    named = {*(() if callable(mark.paths) else mark.paths), mark.reads_when.partition("=")[0]} - {""}
    if not named <= known:
        raise Unusable(f"{signature.name}: its mark names `{sorted(named - known)[0]}`, which it does not take")
    return BoundTool(signature=signature, mark=mark, call=function)


def _awaitable(function: Callable[..., object]) -> Callable[..., Awaitable[object]]:
    if inspect.iscoroutinefunction(function):
        return function

    async def in_a_thread(**arguments: object) -> object:
        found = await in_own_thread(partial(function, **arguments))
        return await found if inspect.isawaitable(found) else found

    return in_a_thread


def capability_of(word: str) -> Capability:
    """The capability for a name or synonym (`network`, `fs.read`, ...). Raises `Unusable`."""
    lowered = word.strip().lower()
    if lowered in CAPABILITY_WORDS:
        return CAPABILITY_WORDS[lowered]
    try:
        return Capability(lowered)
    except ValueError:
        known = ", ".join(Capability)
        raise Unusable(f"`{word}` is not a capability; there are {known}") from None


def _only_reads(rule: str, arguments: Mapping[str, object]) -> bool:
    name, _, values = rule.partition("=")
    if not name:
        return False
    return arguments[name] in values.split("|") if values else bool(arguments[name])


def _paths(touched: Touched, arguments: Mapping[str, object], workspace: str) -> tuple[str, ...]:
    found: list[str] = [] if not callable(touched) else list(touched(arguments))
    for name in () if callable(touched) else touched:
        value = arguments[name]
        found.extend(str(item) for item in (value if isinstance(value, (list, tuple)) else [value]))
    return tuple(resolve(path, workspace) for path in found)


def _summary(name: str, arguments: Mapping[str, object]) -> str:
    words = next((value for value in arguments.values() if isinstance(value, str) and value), "")
    line = " ".join(words.split())
    shown = line if len(line) <= SUMMARY_CHARS else f"{line[: SUMMARY_CHARS - 1]}…"
    return f"{name}: {shown}" if shown else name
