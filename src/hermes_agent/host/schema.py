"""Settings as a tree of frozen dataclasses, described for whoever reads a file or writes a manual page."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from hermes_agent.core.dataclass import dataclass
from hermes_agent.version import VERSION

S = TypeVar("S")
T = TypeVar("T")
Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"
LISTS: Mapping[Any, Callable[[list[Any]], Any]] = {(list, (str,)): list, (tuple, (str, ...)): tuple}
PlainMap: TypeAlias = "dict[str, Plain]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A `str`, `int`, `float` or `bool`."""

    of: type


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of a few words: a `Literal` or a `StrEnum`, which `make` builds."""

    values: tuple[str, ...]
    make: Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    """A list of texts, as a `list` or a `tuple`."""

    make: Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf:
    """Texts under names that the person chooses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A nested dataclass."""

    schema: type[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Dataclasses of one kind under names that the person chooses."""

    schema: type[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """Anything: the one section that is not checked."""


WORDS: Mapping[type[Any], str] = {
    ListOf: "a list of texts",
    MapOf: "names with a text each",
    Section: "a section",
    Table: "names with a section each",
    Free: "anything",
}
Kind = Scalar | Choice | ListOf | MapOf | Section | Table | Free


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One field of a settings class. `doc` and the bounds `least` and `most` come from its metadata."""

    name: str
    kind: Kind
    optional: bool
    default: object
    doc: str
    least: float | None = None
    most: float | None = None

    @property
    def expected(self) -> str:
        """What may stand there, in words."""
        words = _words(self.kind)
        if self.least is not None and self.most is not None:
            words += f" from {self.least:g} to {self.most:g}"
        elif self.least is not None:
            words += f", at least {self.least:g}"
        elif self.most is not None:
            words += f", at most {self.most:g}"
        return words + (" (or nothing)" if self.optional else "")


def setting(default: T, doc: str, *, least: float | None = None, most: float | None = None) -> T:
    """The field of a setting: what it is where nothing is said, what it means, and a number's bounds, both included."""
    return field(default=default, metadata={"doc": doc, "least": least, "most": most})


def section(made: Callable[[], T], doc: str) -> T:
    """The field of settings for a part that has settings of its own, or for named ones."""
    return field(default_factory=made, metadata={"doc": doc})


def describe(schema: type[object]) -> Mapping[str, Setting]:
    """The settings of one class by name, in order. Raises `TypeError` for a type that no file can hold."""
    return _described(schema)  # type: ignore[arg-type]  # a class is hashable, which typeshed does not tell


@lru_cache(maxsize=256)
def _described(schema: type[Any]) -> Mapping[str, Setting]:
    hints = get_type_hints(schema)
    return {entry.name: _setting(entry, hints[entry.name], schema) for entry in fields(schema)}


def walk(schema: type[Any], prefix: str = "") -> Iterator[tuple[str, Setting]]:
    """Every leaf below a class with its dotted key; a name that the person chooses shows as `NAME`."""
    for name, entry in describe(schema).items():
        key = f"{prefix}{name}"
        match entry.kind:
            case Section(schema=inner):
                yield from walk(inner, f"{key}.")
            case Table(schema=inner):
                yield from walk(inner, f"{key}.NAME.")
            case _:
                yield key, entry


def sections(schema: type[Any], prefix: str = "") -> Iterator[str]:
    """The dotted keys of all sections and tables below a class."""
    for name, entry in describe(schema).items():
        if isinstance(entry.kind, Section | Table):
            yield f"{prefix}{name}"
            inner = ".NAME." if isinstance(entry.kind, Table) else "."
            yield from sections(entry.kind.schema, f"{prefix}{name}{inner}")


def find(schema: type[Any], key: str) -> Setting | None:
    """The setting under a dotted key, section or leaf; None where there is none."""
    name, _, rest = key.partition(".")
    entry = describe(schema).get(name)
    if entry is None or not rest:
        return entry
    match entry.kind:
        case Section(schema=inner):
            return find(inner, rest)
        case Table(schema=inner):
            chosen, _, below = rest.partition(".")
            return (find(inner, below) if below else _row(inner, chosen)) if chosen else None
        case MapOf() | Free():
            return Setting(name=rest, kind=Scalar(of=str), optional=True, default=None, doc=entry.doc)
        case _:
            return None


def fingerprint(schema: type[Any]) -> str:
    """What decides whether a file fits: the class, and which sources declare the settings, by their times and sizes.
    To describe every setting would take as long as all the rest of reading them."""
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
    """The settings that these checked values stand for; what is missing takes its default."""
    known = describe(schema)
    return schema(**{name: _value(known[name].kind, value) for name, value in plain.items()})


def _value(kind: Kind, plain: Any) -> object:  # noqa: ANN401 - what it holds is known by `kind`
    if plain is None:
        return None
    match kind:
        case Section(schema=inner):
            return build(inner, plain)
        case Table(schema=inner):
            return {name: build(inner, row) for name, row in plain.items()}
        case Choice(make=make) | ListOf(make=make):
            return make(plain)
        case Scalar(of=of):
            return of(plain)
        case MapOf() | Free():
            return plain


def _row(schema: type[Any], name: str) -> Setting:
    return Setting(name=name, kind=Section(schema=schema), optional=False, default=None, doc="")


def _setting(entry: Field[Any], hint: object, schema: type[Any]) -> Setting:
    inner, optional = _unwrap(hint)
    if entry.default is MISSING and entry.default_factory is MISSING:
        raise TypeError(f"{schema.__name__}.{entry.name} has no default")
    return Setting(
        name=entry.name,
        kind=_kind(inner, f"{schema.__name__}.{entry.name}"),
        optional=optional,
        default=entry.default_factory() if entry.default_factory is not MISSING else entry.default,
        doc=entry.metadata.get("doc", ""),
        least=entry.metadata.get("least"),
        most=entry.metadata.get("most"),
    )


def _unwrap(hint: object) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    members = [member for member in get_args(hint) if member is not type(None)]
    return (members[0], True) if len(members) == 1 else (hint, False)


def _kind(hint: object, where: str) -> Kind:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return Choice(values=arguments, make=str)
    if hint in (str, int, float, bool):
        return Scalar(of=hint)
    if isinstance(hint, type) and (issubclass(hint, StrEnum) or is_dataclass(hint)):
        return Section(schema=hint) if is_dataclass(hint) else Choice(values=tuple(hint), make=hint)
    if (origin, arguments) in LISTS:
        return ListOf(make=LISTS[origin, arguments])
    if origin in (dict, Mapping) and arguments and arguments[0] is str:
        return _mapping(arguments[1], where)
    raise TypeError(f"{where}: no settings file can hold a {hint}")


def _mapping(of: object, where: str) -> Kind:
    if of is str:
        return MapOf()
    if of is Any:
        return Free()
    if isinstance(of, type) and is_dataclass(of):
        return Table(schema=of)
    raise TypeError(f"{where}: a table holds texts or settings classes, not {of}")


def _words(kind: Kind) -> str:
    match kind:
        case Scalar(of=of):
            return {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}[of]
        case Choice(values=values):
            return "one of " + ", ".join(values)
        case _:
            return WORDS[type(kind)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong; `line` counts from 1, 0 where the whole file is meant."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a text says. `values` holds only what is right, `lines` the line of each leaf in it."""

    values: PlainMap
    lines: dict[str, int]
    problems: tuple[Problem, ...]
