"""Decodes dataclasses from plain JSON values: the inverse of encoding, for the unions of this package; and the texts in
such values.

The `kind` field selects the class of a union. A missing field takes its default, and an unknown field is ignored,
so that the log of a later version can still be read. Raises `ValueError` for values that do not fit.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Kind = Any  # a class, or a union of classes
Plain = Any  # what JSON gives
Reviver = Callable[[Plain], Any]


def revive(kind: Kind, plain: Plain) -> Plain:
    """Decodes a plain value (dicts, lists, strings, numbers) as type `kind`. Raises `ValueError` for what does not
    fit."""
    try:
        return _reviver(kind)(plain)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a {getattr(kind, '__name__', kind)}: {error}") from error


def _same(plain: Plain) -> Plain:
    return plain


def _text(plain: Plain) -> str:
    if plain.__class__ is str:
        return plain
    if isinstance(plain, int | float):
        return str(plain)
    raise ValueError(f"{plain!r:.40} is not text")


def _reviver(kind: Kind) -> Reviver:
    return _made(kind)


@cache
def _made(kind: Kind) -> Reviver:
    origin: object = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _union(kind)
    if origin is tuple:
        item = _reviver(get_args(kind)[0])
        return tuple if item is _same else lambda plain: tuple(item(entry) for entry in plain)
    if is_dataclass(kind):
        return _record(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return _text if kind is str else _same


def _union(kind: Kind) -> Reviver:
    members = [member for member in get_args(kind) if member is not type(None)]
    if len(members) == 1:
        only = _reviver(members[0])
        return only if only is _same else lambda plain: None if plain is None else only(plain)
    records = {_tag(member): _reviver(member) for member in members if is_dataclass(member)}
    if not records:
        return _same
    if len(members) == len(get_args(kind)):
        return lambda plain: records[plain["kind"]](plain)
    return lambda plain: None if plain is None else records[plain["kind"]](plain)


def _tag(record: Kind) -> str:
    hint = get_type_hints(record).get("kind")
    return str(get_args(hint)[0]) if get_origin(hint) is Literal else ""


def _record(record: Kind) -> Reviver:
    hints = get_type_hints(record)
    revivers = {entry.name: _reviver(hints[entry.name]) for entry in fields(record) if entry.init}
    required = [
        entry.name
        for entry in fields(record)
        if entry.init and entry.default is MISSING and entry.default_factory is MISSING
    ]

    def build(plain: Mapping[str, Plain]) -> Plain:
        missing = [name for name in required if name not in plain]
        if missing:
            raise KeyError(missing[0])
        return record(**{name: revivers[name](value) for name, value in plain.items() if name in revivers})

    return build


def with_texts(value: Plain, change: Callable[[str], object], *, keys: bool = False) -> Plain:
    """The value with each string in it changed, at any depth; with `keys` also the names."""
    match value:
        case str():
            return change(value)
        case Mapping():
            return {(change(key) if keys else key): with_texts(each, change, keys=keys) for key, each in value.items()}
        case list() | tuple():
            return [with_texts(each, change, keys=keys) for each in value]
        case _:
            return value


def texts_in(value: Plain, *, keys: bool = False) -> list[str]:
    """All these strings, in order."""
    found: list[str] = []
    with_texts(value, found.append, keys=keys)
    return found
