"""Explains and edits single settings in config.yaml: keeps comments, and writes nothing that would not load."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from typing import Any

from yaml import YAMLError

from hermes_agent.core.errors import ConfigError
from hermes_agent.host.config import Loaded, remember
from hermes_agent.host.late import libraries
from hermes_agent.host.locks import locked
from hermes_agent.host.nearest import nearest_key
from hermes_agent.host.paths import Home, read_small, write_private
from hermes_agent.host.schema import Checked, Plain, PlainMap, Setting, find, plain_at, walk
from hermes_agent.host.yaml_check import check, compose, parse_value

TELLING = re.compile(r"(api_?key|token|secret|password|authorization|credential)s?$", re.IGNORECASE)
"""Ends the name of a setting that is a secret."""


def explain(loaded: Loaded[Any], schema: type[Any], key: str) -> tuple[Setting, Plain, str, Plain]:
    """A setting or section, its value, the source of the value, and its default. Raises `ConfigError` for an unknown
    key."""
    entry = known(schema, key)
    return entry, plain_at(plain_of(loaded.value), key), source_of(loaded, key), _plain(entry.default)


def source_of(loaded: Loaded[Any], key: str) -> str:
    """The source of a key's value, or of the settings below or above it."""
    if key in loaded.sources:
        return loaded.sources[key]
    below = [source for name, source in loaded.sources.items() if name.startswith(f"{key}.")]
    if below:
        return below[0]
    above = [name for name in loaded.sources if key.startswith(f"{name}.")]
    return loaded.sources[max(above, key=len)] if above else "default"


def known(schema: type[Any], key: str) -> Setting:
    """The setting of this key. Raises `ConfigError`, which names the nearest known key."""
    entry = find(schema, key) if key else None
    if entry is None:
        near = nearest_key(key, (name for name, _ in walk(schema)))
        meant = f"Did you mean `{near}`?" if near else "`hermes config show --all` lists the settings."
        raise ConfigError(f"There is no setting `{key}`. {meant}")
    return entry


def keys(schema: type[Any]) -> list[tuple[str, str]]:
    """Every setting that holds a value, with what it does."""
    return [(name, entry.doc) for name, entry in walk(schema) if entry.schema is None]


def shown(loaded: Loaded[Any], schema: type[Any], key: str, redact: Callable[[str], str]) -> list[tuple[str, str, str]]:
    """Settings for a person: key, value as `hermes config set` accepts it with secrets masked, and source. Of one key;
    for an empty one, all that are set."""
    values, found = plain_of(loaded.value), []
    for name in [key] if key else sorted(loaded.sources):
        if find(schema, name) is not None:
            value = plain_at(values, name)
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            text = "[secret]" if text and TELLING.search(name) else redact(text)
            found.append((name, text, source_of(loaded, name)))
    return found


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


def set_value(home: Home, schema: type[Any], key: str, text: str, *, locks: bool = True) -> Plain:
    """Write one setting as a person typed it; its value.

    A list is `a, b` or `[a, b]`, a table `{name: text}`. Raises `ConfigError` for an unknown key, an invalid
    value, and where the file would still be invalid; it stays untouched then. With `locks` False the caller holds
    the lock.
    """
    return set_values(home, schema, {key: text}, locks=locks)[key]


def set_values(home: Home, schema: type[Any], texts: Mapping[str, str], *, locks: bool = True) -> dict[str, Plain]:
    """Write several settings atomically, each as `set_value` does."""
    values: dict[str, Plain] = {}
    for key, text in texts.items():
        values[key], problem = parse_value(text, known(schema, key), key)
        if problem:
            raise ConfigError(problem)

    def put(document: Any) -> None:  # noqa: ANN401 - a ruamel document has no type of its own
        for key, value in values.items():
            below = document
            *path, last = key.split(".")
            for name in path:
                if not isinstance(below.get(name), dict):
                    below[name] = {}
                below = below[name]
            below[last] = value

    _edit(home, schema, put, locks=locks)
    return values


def unset(home: Home, schema: type[Any], key: str, *, locks: bool = True) -> bool:
    """Remove a setting or section from the file, and what holds nothing then, which restores the default; False where
    it was not there.

    Unknown keys can be removed too. Raises `ConfigError` where the file is not YAML.
    """
    removed = False

    def take(document: Any) -> None:  # noqa: ANN401 - a ruamel document has no type of its own
        nonlocal removed
        *path, last = key.split(".")
        chain = [document]
        for name in path:
            chain.append(chain[-1].get(name) if isinstance(chain[-1], dict) else None)
        removed = isinstance(chain[-1], dict) and last in chain[-1]
        if not removed:
            return
        del chain[-1][last]
        for below, name in zip(reversed(chain[:-1]), reversed(path), strict=True):
            if not below[name]:
                del below[name]

    _edit(home, schema, take, locks=locks)
    if not removed:
        known(schema, key)
    return removed


def replace_text(home: Home, schema: type[Any], content: bytes) -> Checked:
    """Replace the whole file if the new text is valid; otherwise write nothing and return the problems."""
    checked = check(content, schema, str(home.config_file))
    if not checked.problems:
        home.ensure()
        with locked(home.locks / "config.lock"):
            write_private(home.config_file, content)
            remember(home, schema, content, checked)
    return checked


def _edit(
    home: Home,
    schema: type[Any],
    change: Any,  # noqa: ANN401 - a callable over a ruamel document
    *,
    locks: bool,
) -> None:
    home.ensure()
    with locked(home.locks / "config.lock") if locks else nullcontext():
        before = read_small(home.config_file) or b""
        after = _changed(home, before, change)
        if after == before:
            return
        checked = check(after, schema, str(home.config_file))
        if checked.problems:
            lines = "\n".join(str(problem) for problem in checked.problems)
            raise ConfigError(f"Nothing was changed, because config.yaml would not be valid:\n{lines}")
        write_private(home.config_file, after)
        remember(home, schema, after, checked)


def _changed(home: Home, before: bytes, change: Any) -> bytes:  # noqa: ANN401 - a callable over a ruamel document
    ruamel = libraries.ruamel_yaml
    yaml = ruamel.YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    try:
        text = before.decode("utf-8-sig")
        compose(text)  # At once; a line of nothing but brackets would hold the other one for minutes.
        document = yaml.load(text)
    except (YAMLError, ruamel.error.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{home.config_file}:{mark.line + 1}" if mark else str(home.config_file)
        message = f"{place}: the file cannot be read as YAML, so nothing was changed. `hermes config edit` opens it."
        raise ConfigError(message) from error
    if document is None:
        document, before = ruamel.comments.CommentedMap(), _with_newline(before)
        change(document)
        return before + _dumped(yaml, document) if document else before
    if not isinstance(document, dict):
        raise ConfigError(
            f"{home.config_file} holds no settings, so nothing was changed. `hermes config edit` opens it."
        )
    change(document)
    return _dumped(yaml, document)


def _with_newline(text: bytes) -> bytes:
    """A file of comments alone keeps them above what is written first."""
    return text if not text or text.endswith(b"\n") else text + b"\n"


def _dumped(yaml: Any, document: Any) -> bytes:  # noqa: ANN401 - ruamel's own objects
    out = io.BytesIO()
    yaml.dump(document, out)
    return out.getvalue()
