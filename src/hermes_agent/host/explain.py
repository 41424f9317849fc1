"""Single settings as a person asks for them: value, source, default, meaning, and their place in the whole."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from hermes_agent.core.errors import ConfigError
from hermes_agent.host.config import Loaded
from hermes_agent.host.nearest import nearest_key
from hermes_agent.host.schema import Plain, PlainMap, Setting, find, plain_at, renamed_to, walk


def explain(loaded: Loaded[Any], schema: type[Any], key: str) -> tuple[Setting, Plain, str, Plain]:
    """One setting or section; its value; where that comes from; and its default. Raises `ConfigError` for an unknown
    key."""
    entry = known(schema, key)
    return entry, plain_at(plain_of(loaded.value), key), source_of(loaded, key), _plain(entry.default)


def source_of(loaded: Loaded[Any], key: str) -> str:
    """Where the value of a key, or of the settings below or above it, comes from."""
    if key in loaded.sources:
        return loaded.sources[key]
    below = [source for name, source in loaded.sources.items() if name.startswith(f"{key}.")]
    if below:
        return below[0]
    above = [name for name in loaded.sources if key.startswith(f"{name}.")]
    return loaded.sources[max(above, key=len)] if above else "default"


def known(schema: type[Any], key: str) -> Setting:
    """The setting of this key. Raises `ConfigError` with the nearest known key."""
    entry = find(schema, key) if key else None
    if entry is None:
        near = renamed_to(schema, key) or nearest_key(key, (name for name, _ in walk(schema)))
        meant = f"Did you mean `{near}`?" if near else "`hermes config show` lists the settings."
        raise ConfigError(f"There is no setting `{key}`. {meant}")
    return entry


def plain_of(value: object) -> PlainMap:
    """All settings of a settings object as plain values, defaults included, in the order of its class."""
    return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}  # type: ignore[arg-type]  # every settings object is a dataclass


def _plain(value: object) -> Plain:
    if is_dataclass(value):
        return plain_of(value)
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, str):
        return str(value)
    return value if isinstance(value, int | float) else None
