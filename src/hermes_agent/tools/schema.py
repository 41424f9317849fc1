"""Builds `Tool` objects from decorated methods and plain functions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.messages import Origin, Text, ToolSchema
from hermes_agent.core.tool import MARK, Answer, CallContext, CallFacts, Quarantined, Tool, ToolMark, Touched
from hermes_agent.host.paths import followed
from hermes_agent.host.tasks import in_own_thread
from hermes_agent.tools.schema import Signature, Unusable, signature_of

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
