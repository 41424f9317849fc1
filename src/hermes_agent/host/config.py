"""Loads the settings of a home from config.yaml: checked, with a fallback to the last good ones, and the source of
each value; and changes single values with the file's comments kept."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import field, fields, is_dataclass
from typing import Any, Generic, Literal, TypeVar

from yaml import YAMLError

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError, HomeError
from hermes_agent.host.late import late, libraries
from hermes_agent.host.locks import locked
from hermes_agent.host.nearest import nearest_key
from hermes_agent.host.paths import Home, environment, read_small, write_private
from hermes_agent.host.schema import (
    Checked,
    Plain,
    PlainMap,
    Problem,
    Setting,
    build,
    find,
    fingerprint,
    plain_at,
    renamed_to,
    walk,
    with_value,
)
from hermes_agent.host.yaml_check import check, compose, parse_value

S = TypeVar("S")
Basis = Literal["file", "last good", "defaults"]
OVERRIDES = {"HERMES_MODEL": "model.default"}
"""The settings that the environment may say instead of the file; everything else has one home."""
USED = "The last good settings are used."
NEVER = "It was never valid, so nothing runs: Hermes does not know your database and limits."
MEND = "Repair it with `hermes config edit`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded(Generic[S]):
    """Loaded settings, usable whatever the state of the file.

    `sources` gives the origin of each value that is no default (`config.yaml:12`). `basis` says what `value` is made
    of: the current file, the last good one, or the defaults. With `problems` or `notices` every surface shows `notice`.
    `overridden` holds, by key, the file's value where an environment variable replaces it (None: none).
    """

    value: S
    sources: Mapping[str, str]
    problems: tuple[Problem, ...]
    basis: Basis
    plain: PlainMap
    overridden: Mapping[str, Plain] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    @property
    def notice(self) -> str:
        """The problems of the file and what is used instead, or future ones, as a sentence; empty where there are
        none."""
        if not self.problems:
            return " ".join(self.notices)
        more = f" (and {len(self.problems) - 1} more: `hermes config check`)" if len(self.problems) > 1 else ""
        return f"{self.problems[0]}{more} {self.remedy}"

    @property
    def remedy(self) -> str:
        """The consequence of an error in the file, and how to repair it."""
        return USED if self.basis == "last good" else NEVER

    def usable(self) -> Loaded[S]:
        """These settings, for callers that act on them. Raises `ConfigError` for a file that was never valid."""
        if self.problems and self.basis == "defaults":
            raise ConfigError(f"{self.notice} {MEND}")
        return self

    def strict(self) -> Loaded[S]:
        """These settings, for callers that accept only the file as written. Raises `ConfigError`."""
        if self.problems:
            raise ConfigError("\n".join(str(problem) for problem in self.problems))
        return self


def load(home: Home, schema: type[S], variables: Mapping[str, str] | None = None) -> Loaded[S]:
    """Read the settings; never raises because of the content of config.yaml.

    An unchanged file is not parsed again: its values are cached in `cache/config.last-good.json`.
    """
    remembered = _remembered(home)
    try:
        content = read_small(home.config_file)
    except HomeError as error:
        problem = Problem(file=str(home.config_file), line=0, text=str(error))
        return _fallback(home, schema, (problem,), remembered, variables)
    if content is None:
        return _loaded(schema, Checked(values={}, lines={}), "defaults", variables)
    if remembered.get("text") == content.decode("utf-8", "replace") and remembered.get("schema") == fingerprint(schema):
        known = Checked(
            values=remembered["values"],
            lines=remembered["lines"],
            notices=tuple(remembered.get("notices", ())),
        )
        return _loaded(schema, known, "file", variables)
    checked = _checked(content, schema, str(home.config_file))
    if checked.problems:
        return _fallback(home, schema, checked.problems, remembered, variables)
    remember(home, schema, content, checked)
    return _loaded(schema, checked, "file", variables)


def remember(home: Home, schema: type[Any], content: bytes, checked: Checked) -> None:
    """Cache the settings as the last good ones; skipped in a home that cannot be written."""
    kept = {
        "schema": fingerprint(schema),
        "text": content.decode("utf-8", "replace"),
        "values": checked.values,
        "lines": checked.lines,
        "notices": checked.notices,
    }
    with suppress(HomeError):
        write_private(home.last_good_config, json.dumps(kept).encode(), durable=False)


def _fallback(
    home: Home,
    schema: type[S],
    problems: tuple[Problem, ...],
    remembered: Mapping[str, Any],
    variables: Mapping[str, str] | None,
) -> Loaded[S]:
    if not remembered:
        return _loaded(schema, Checked(values={}, lines={}, problems=problems), "defaults", variables)
    values: PlainMap = remembered["values"]
    if remembered.get("schema") != fingerprint(schema):
        kept = str(home.last_good_config)
        values = _checked(remembered["text"].encode(), schema, kept).values
    return _loaded(schema, Checked(values=values, lines={}, problems=problems), "last good", variables)


def _loaded(schema: type[S], checked: Checked, basis: Basis, variables: Mapping[str, str] | None) -> Loaded[S]:
    values, sources = checked.values, {key: f"config.yaml:{line}" for key, line in checked.lines.items()}
    if basis == "last good":
        sources = dict.fromkeys(_leaves(values), "the last good config.yaml")
    overridden: dict[str, Plain] = {}
    for name, key in OVERRIDES.items():
        said = (environment() if variables is None else variables).get(name, "")
        if said and find(schema, key) is not None:
            overridden[key] = plain_at(values, key)
            values = with_value(values, key, said)
            sources[key] = f"environment ({name})"
    return Loaded(
        value=build(schema, values),
        sources=sources,
        problems=checked.problems,
        basis=basis,
        plain=values,
        overridden=overridden,
        notices=checked.notices,
    )


def _checked(content: bytes, schema: type[Any], file: str) -> Checked:
    checked: Checked = late("hermes_agent.host.yaml_check:check")(content, schema, file)
    return checked


def _leaves(values: PlainMap, prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, value in values.items():
        found += _leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else [f"{prefix}{name}"]
    return found


def _remembered(home: Home) -> Mapping[str, Any]:
    """The last good settings as they were kept; empty where there are none or somebody damaged them."""
    try:
        kept = json.loads(read_small(home.last_good_config) or b"{}")
    except (HomeError, ValueError):
        return {}
    whole = isinstance(kept, dict) and all(isinstance(kept.get(name), dict) for name in ("values", "lines"))
    return kept if whole and isinstance(kept.get("text"), str) else {}


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
        near = renamed_to(schema, key) or nearest_key(key, (name for name, _ in walk(schema)))
        meant = f"Did you mean `{near}`?" if near else "`hermes config show` lists the settings."
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
    """Remove a setting or section from the file, which restores its default; False where it was not there.

    Unknown keys can be removed too. Raises `ConfigError` where the file is not YAML.
    """
    removed = False

    def take(document: Any) -> None:  # noqa: ANN401 - a ruamel document has no type of its own
        nonlocal removed
        *path, last = key.split(".")
        below = document
        for name in path:
            below = below.get(name) if isinstance(below, dict) else None
        if isinstance(below, dict) and last in below:
            del below[last]
            removed = True

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
