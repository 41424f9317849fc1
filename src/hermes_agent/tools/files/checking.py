"""Syntax check of changed files: reports errors that a change introduced."""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Callable
from pathlib import PurePath

from hermes_agent.host.late import libraries

MOST_BYTES = 1 << 20  # beyond, reading it takes longer than the change itself
_SHOWN = 200


def new_problem(path: str, before: str | None, after: str) -> str:
    """The syntax error that the change introduced, as a sentence; empty if none.

    Checks Python, JSON (and notebooks), YAML and TOML. A file that was invalid before is not reported.
    """
    check = _CHECKS.get(PurePath(path).suffix.lower())
    if check is None or len(after) > MOST_BYTES:
        return ""
    found = check(after)
    if not found or (before is not None and check(before)):
        return ""
    return f"The file has a syntax error now: {found[:_SHOWN]}."


def _python(text: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape is no error
            ast.parse(text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or "nested too deeply"
    return ""


def _json(text: str) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    except RecursionError:
        return "nested too deeply"
    return ""


def _toml(text: str) -> str:
    try:
        libraries.tomllib.loads(text)
    except (libraries.tomllib.TOMLDecodeError, RecursionError) as error:
        return str(error)
    return ""


def _yaml(text: str) -> str:
    yaml = libraries.yaml
    try:
        for _ in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            pass
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", "") or str(error)
        return f"line {mark.line + 1}: {what}" if mark else what
    except RecursionError:
        return "nested too deeply"
    return ""


_CHECKS: dict[str, Callable[[str], str]] = {
    ".py": _python,
    ".pyi": _python,
    ".json": _json,
    ".ipynb": _json,
    ".toml": _toml,
    ".yaml": _yaml,
    ".yml": _yaml,
}
