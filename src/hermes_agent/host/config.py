"""Loads the settings of a home from config.yaml: checked, with a fallback to the last good ones, and the source of
each value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any, Generic, Literal, TypeVar

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError, HomeError
from hermes_agent.host.late import late
from hermes_agent.host.paths import Home, environment, read_small, write_private
from hermes_agent.host.schema import (
    Checked,
    Plain,
    PlainMap,
    Problem,
    build,
    find,
    fingerprint,
    plain_at,
    with_value,
)

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
    of: the current file, the last good one, or the defaults. With `problems` every surface shows `notice`.
    `overridden` holds, by key, the file's value where an environment variable replaces it (None: none).
    """

    value: S
    sources: Mapping[str, str]
    problems: tuple[Problem, ...]
    basis: Basis
    plain: PlainMap
    overridden: Mapping[str, Plain] = field(default_factory=dict)

    @property
    def notice(self) -> str:
        """The problems of the file and what is used instead, as a sentence; empty where there are none."""
        if not self.problems:
            return ""
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
