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
    """The tasks of one file: several YAML documents, one task each."""
    documents = yaml.load_all(text, Loader=_LOADER)
    return tuple(_task(document, f"{name}, task {place}") for place, document in enumerate(documents, 1))


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _task(plain: Json, name: str) -> Task:
    return Task(
        name=name,
        can=plain["can"],
        when=_pattern(plain["when"]),
        message=plain.get("message"),
        facts=tuple(map(_pattern, plain.get("facts", ()))),
        steps=tuple(tuple(map(_option, step.get("either", (step,)))) for step in plain["steps"]),
    )


def _option(plain: Json) -> Option:
    when = plain.get("when", {})
    return Option(
        think=plain.get("think", ""),
        say=plain.get("say", ""),
        calls=tuple(each for call in plain.get("calls", ()) for each in call.items()),
        tool=when.get("tool", ""),
        result=_pattern(when["result"]) if "result" in when else None,
        told=_pattern(when["told"]) if "told" in when else None,
    )


def _pattern(text: str) -> Pattern:
    return re.compile(text, re.MULTILINE)
