"""Scenario files: what the demo's model does about which words, read from YAML into values.

can: Repair the failing test.            # one line of what an unknown question is told
when: '(?i)failing test'                 # regex on the person's message; its named groups are values
message: 1                               # only as the nth message of the person (optional)
facts: ['FAIL: (?P<test>\\w+)']          # regexes on the task's tool results; the newest match gives the values
steps:                                   # one per round of tool calls, the last one without calls
  - think: Where does it fail?
    say: I run the tests.
    calls: [{terminal: {command: python3 -m unittest}}]
  - either:                              # the first that fits the newest results
      - when: {tool: terminal, result: 'FAILED'}   # `told`: what the runtime says beside the messages
        say: '${test} fails.'
        calls: [{read_file: {path: '${file}'}}]
      - say: Nothing fails.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from hermes_agent.core.dataclass import dataclass

Json = Mapping[str, Any]
Pattern = re.Pattern[str]

FOLDER = "scenarios"


class BadScenario(ValueError):
    """A scenario file is not what the format says; the message names the task and the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One possible answer of a step, and the conditions on the newest tool result, and on what the runtime tells beside
    the messages, under which it is given."""

    think: str = ""
    say: str = ""
    calls: tuple[tuple[str, Mapping[str, object]], ...] = ()
    tool: str = ""
    result: Pattern | None = None
    told: Pattern | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a person may ask for, and the steps that answer it."""

    name: str
    can: str
    when: Pattern
    message: int | None
    facts: tuple[Pattern, ...]
    steps: tuple[tuple[Option, ...], ...]


@cache
def shipped_tasks() -> tuple[Task, ...]:
    """The tasks of the scenario files that come with the program."""
    folder = files(__package__) / FOLDER
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    return tuple(task for name in names for task in read_tasks((folder / name).read_text("utf-8"), name))


def read_tasks(text: str, name: str) -> tuple[Task, ...]:
    """The tasks of one file: several YAML documents, one task each. Raises `BadScenario`."""
    try:
        documents = list(yaml.load_all(text, Loader=_LOADER))
        return tuple(_task(document, f"{name}, task {place}") for place, document in enumerate(documents, 1))
    except yaml.YAMLError as error:
        raise BadScenario(f"{name}: {error}") from error


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _task(plain: Json, place: str) -> Task:
    _check(plain, {"can", "when", "message", "facts", "steps"}, place)
    try:
        steps = plain["steps"]
        return Task(
            name=place,
            can=plain["can"],
            when=_pattern(plain["when"], place),
            message=plain.get("message"),
            facts=tuple(_pattern(fact, place) for fact in plain.get("facts", ())),
            steps=tuple(_step(step, f"{place}, step {number}") for number, step in enumerate(steps, 1)),
        )
    except KeyError as error:
        raise BadScenario(f"{place}: {error} is missing") from error


def _step(plain: Json, place: str) -> tuple[Option, ...]:
    if "either" in plain:
        _check(plain, {"either"}, place)
        return tuple(_option(option, place) for option in plain["either"])
    return (_option(plain, place),)


def _option(plain: Json, place: str) -> Option:
    _check(plain, {"think", "say", "calls", "when"}, place)
    when = plain.get("when", {})
    _check(when, {"tool", "result", "told"}, place)
    return Option(
        think=plain.get("think", ""),
        say=plain.get("say", ""),
        calls=tuple((name, arguments) for call in plain.get("calls", ()) for name, arguments in call.items()),
        tool=when.get("tool", ""),
        result=_pattern(when["result"], place) if "result" in when else None,
        told=_pattern(when["told"], place) if "told" in when else None,
    )


def _pattern(text: str, place: str) -> Pattern:
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as error:
        raise BadScenario(f"{place}: {text!r} is no regular expression: {error}") from error


def _check(plain: Json, known: set[str], place: str) -> None:
    if not isinstance(plain, Mapping):
        raise BadScenario(f"{place}: expected keys and values")
    if strange := set(plain) - known:
        raise BadScenario(f"{place}: unknown {', '.join(sorted(strange))}; known are {', '.join(sorted(known))}")
