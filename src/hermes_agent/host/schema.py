"""Schema of settings as a tree of frozen dataclasses, used for reading, checking, editing, explaining and the
manual."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass, replace
from enum import StrEnum
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from hermes_agent.core.dataclass import dataclass
from hermes_agent.version import VERSION

S = TypeVar("S")
T = TypeVar("T")
Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"
PlainMap: TypeAlias = "dict[str, Plain]"
WORDS = {
    "text": "a text",
    "whole": "a whole number",
    "number": "a number",
    "truth": "true or false",
    "list": "a list of texts",
    "map": "names with a text each",
    "section": "a section",
    "table": "names with a section each",
    "free": "anything",
}
"""What may stand in a setting of each kind; a `choice` is one of a few words, `mixed` a choice, truth or list.
`free` is the one that is not checked."""
FORMS = {"address": "an address such as http://127.0.0.1:8000/v1"}
"""Forms that the text of a setting may have to have."""
ADDRESS = re.compile(r"(https?://[^\s/]+(/\S*)?)?")
KINDS: Mapping[object, tuple[str, Callable[[Any], object]]] = {
    str: ("text", str),
    int: ("whole", int),
    float: ("number", float),
    bool: ("truth", bool),
    list[str]: ("list", list),
    tuple[str, ...]: ("list", tuple),
    **dict.fromkeys((dict[str, str], Mapping[str, str]), ("map", dict)),
    **dict.fromkeys((dict[str, Any], Mapping[str, Any]), ("free", dict)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Schema of one setting. `make` builds its value from a plain one; `schema` is the class of a section, or of
    each row of a table, and None for any other kind; `values` are the allowed values of a choice. `setting`
    describes the other fields."""

    name: str
    kind: str
    make: Callable[[Any], object]
    optional: bool
    default: object
    schema: Any = None
    values: tuple[str, ...] = ()
    doc: str = ""
    least: float | None = None
    most: float | None = None
    form: str = ""

    def fits(self, text: str) -> bool:
        """Whether a text has the form that is wanted."""
        return self.form != "address" or ADDRESS.fullmatch(text) is not None

    @property
    def expected(self) -> str:
        """The accepted values, in words."""
        words = FORMS.get(self.form) or WORDS.get(self.kind) or "one of " + ", ".join(self.values)
        if self.kind == "mixed":
            words += f", {WORDS['truth']}, or {WORDS['list']}"
        if self.least is not None and self.most is not None:
            words += f" from {self.least:g} to {self.most:g}"
        elif self.least is not None:
            words += f", at least {self.least:g}"
        elif self.most is not None:
            words += f", at most {self.most:g}"
        return words + (" (or nothing)" if self.optional else "")


def setting(default: T, doc: str, *, least: float | None = None, most: float | None = None, form: str = "") -> T:
    """Declares a setting: default, description, inclusive bounds of a number, and the form of a text (`FORMS`)."""
    return field(default=default, metadata={"doc": doc, "least": least, "most": most, "form": form})


def section(made: Callable[[], T], doc: str) -> T:
    """Declares a subsection, or a table of named ones."""
    return field(default_factory=made, metadata={"doc": doc})


def describe(schema: type[object]) -> Mapping[str, Setting]:
    """The settings of one class by name, in order. Raises `TypeError` for an unsupported type."""
    return _described(schema)  # type: ignore[arg-type]  # a class is hashable, which typeshed does not tell


@lru_cache(maxsize=256)
def _described(schema: type[Any]) -> Mapping[str, Setting]:
    hints = get_type_hints(schema)
    return {entry.name: _setting(entry, hints[entry.name], schema) for entry in fields(schema)}


def walk(schema: type[Any], prefix: str = "") -> Iterator[tuple[str, Setting]]:
    """Every setting and section below a class with its dotted key; a name that the person chooses appears as `NAME`."""
    for name, entry in describe(schema).items():
        yield f"{prefix}{name}", entry
        if entry.schema is not None:
            yield from walk(entry.schema, f"{prefix}{name}.{'NAME.' if entry.kind == 'table' else ''}")


def find(schema: type[Any], key: str) -> Setting | None:
    """The setting under a dotted key, section or leaf; None where there is none."""
    name, _, rest = key.partition(".")
    entry = describe(schema).get(name)
    if entry is None or not rest:
        return entry
    match entry.kind:
        case "section":
            return find(entry.schema, rest)
        case "table":
            chosen, _, below = rest.partition(".")
            row = replace(entry, name=chosen, kind="section", default=None, doc="")
            return (find(entry.schema, below) if below else row) if chosen else None
        case "map" | "free":
            return replace(entry, name=rest, kind="text", make=str, optional=True, default=None)
        case _:
            return None


def plain_at(plain: Plain, key: str) -> Plain:
    """The value under a dotted key; None where there is none."""
    for name in key.split("."):
        plain = plain.get(name) if isinstance(plain, dict) else None
    return plain


def with_value(values: PlainMap, key: str, value: Plain) -> PlainMap:
    """A copy of the values with one added under its dotted key."""
    name, _, rest = key.partition(".")
    if not rest:
        return {**values, name: value}
    below = values.get(name)
    return {**values, name: with_value(below if isinstance(below, dict) else {}, rest, value)}


def fingerprint(schema: type[Any]) -> str:
    """Cache key of a schema: the class, and times and sizes of the sources that declare its settings. Describing
    every setting would take as long as reading the file."""
    package = schema.__module__.partition(".")[0]
    seen, found = {schema.__module__}, [schema.__module__]
    for name in found:
        declared = {value.__module__ for value in vars(sys.modules[name]).values() if isinstance(value, type)}
        fresh = sorted(each for each in declared - seen if each.partition(".")[0] == package)
        seen.update(fresh)
        found += fresh
    facts = [VERSION, schema.__qualname__, *((name, *_stamp(sys.modules[name].__file__)) for name in found)]
    return sha256(repr(facts).encode()).hexdigest()[:16]


def _stamp(file: str | None) -> tuple[int, int]:
    try:
        told = Path(file or "").stat()
    except OSError:  # in an archive
        return (0, 0)
    return (told.st_mtime_ns, told.st_size)


def build(schema: type[S], plain: Mapping[str, Plain]) -> S:
    """The settings object for these checked values; missing ones take their defaults."""
    known = describe(schema)
    return schema(**{name: None if value is None else known[name].make(value) for name, value in plain.items()})


def _setting(entry: Field[Any], hint: object, schema: type[Any]) -> Setting:
    if entry.default is MISSING and entry.default_factory is MISSING:
        raise TypeError(f"{schema.__name__}.{entry.name} has no default")
    inner, optional = _unwrap(hint)
    default = entry.default_factory() if entry.default_factory is not MISSING else entry.default
    try:
        facts = {**_typed(inner), **entry.metadata}
    except TypeError as error:
        raise TypeError(f"{schema.__name__}.{entry.name}: {error}") from error
    return Setting(name=entry.name, optional=optional, default=default, **facts)


def _unwrap(hint: object) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    members = [member for member in get_args(hint) if member is not type(None)]
    return (members[0], True) if len(members) == 1 else (hint, False)


def _typed(hint: Any) -> dict[str, Any]:  # noqa: ANN401 - any annotation
    """What of a setting follows from its type."""
    if hint in KINDS:
        kind, make = KINDS[hint]
        return {"kind": kind, "make": make}
    if {bool, tuple[str, ...]} < set(get_args(hint)):
        words = get_args(get_args(hint)[0])
        return {
            "kind": "mixed",
            "make": lambda plain: tuple(plain) if isinstance(plain, list) else plain,
            "values": words,
        }
    if get_origin(hint) is Literal:
        return {"kind": "choice", "make": str, "values": get_args(hint)}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"kind": "choice", "make": hint, "values": tuple(hint)}
    if isinstance(hint, type) and is_dataclass(hint):
        return {"kind": "section", "make": partial(build, hint), "schema": hint}
    if get_args(hint)[:1] == (str,) and isinstance(row := get_args(hint)[-1], type) and is_dataclass(row):
        return {"kind": "table", "make": partial(_rows, row), "schema": row}
    raise TypeError(f"no settings file can hold a {hint}")


def _rows(schema: type[S], plain: Mapping[str, Any]) -> dict[str, S]:
    return {name: build(schema, row) for name, row in plain.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error in a settings file; `line` counts from 1, 0 for the whole file."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Result of checking a file. `values` holds only the valid ones, `lines` the line of each of them."""

    values: PlainMap
    lines: dict[str, int]
    problems: tuple[Problem, ...] = ()
