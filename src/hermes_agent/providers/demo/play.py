"""Plays scenarios of the demo model: finds the task in the conversation, the step from what was done since, and
fills in observed values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Message, Role, ToolResult, ToolSchema
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Piece, Say, Think

Json = Mapping[str, Any]
Pattern = re.Pattern[str]

FOLDER = "scenarios"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A possible answer of a scenario step of the demo model, and its conditions: on the newest tool result, and on
    the runtime's notes beside the messages."""

    think: str = ""
    say: str = ""
    calls: tuple[tuple[str, Mapping[str, object]], ...] = ()
    tool: str = ""
    result: Pattern | None = None
    told: Pattern | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task that the demo model can do, with the steps that answer it."""

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


PACE = Pace(first=0.05, between=0.008, characters=16)
SCRIPTED = "I am the built-in scripted model: no language model is behind me, and nothing you say leaves this machine."
GO_ON = re.compile(r"(?i)^\s*(continue|go on|carry on|resume)\b[\s.!]*$|^\s*[<\[]")
"""A message that names no task and only asks to go on: a person's word, or a notice of the runtime in brackets."""
UNKNOWN_OUTCOME = re.compile(r"(?i)outcome.{0,20}unknown")
VALUE = re.compile(r"\$\{(\w+)\}")
ADDRESS = re.compile(r"https?://[^\s\"'`<>]*[^\s\"'`<>.,;:!?)]")
QUOTED = re.compile(r"`([^`]+)`|\"([^\"]+)\"")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")
OUTPUT = re.compile(r"(?P<output>(?s:.{0,400}))")


class Player:
    """Plays scenarios without state: the same conversation gets the same answer, also after a crash."""

    def __init__(self, tasks: Sequence[Task], pace: Pace = PACE) -> None:
        self._tasks = tasks
        self._pace = pace

    def answer(self, heard: Heard) -> Answer:
        """The next answer of the latest requested task; an unknown request gets the list of tasks."""
        found = self._find(heard.messages) or _named_tool(heard)
        if found is None:
            return self._words(self._introduction())
        task, start, values = found
        since = heard.messages[start:]
        results = [part for message in since for part in message.parts if isinstance(part, ToolResult)]
        step = min(_rounds(since), len(task.steps) - 1)
        values = {**values, **_values(task, results)}
        for option in task.steps[step]:
            if _fits(option, results, values) and _is_told(option, heard):
                return self._given(option, values, heard)
        return self._words(f"{SCRIPTED} That result is not in my script ({task.name}), so I stop here.")

    def _find(self, messages: Sequence[Message]) -> tuple[Task, int, dict[str, str]] | None:
        """The task of the newest message that names one, where it begins, and the values that the message gave."""
        asked = [(place, message.text) for place, message in enumerate(messages) if message.role is Role.USER]
        for nth in range(len(asked), 0, -1):
            place, text = asked[nth - 1]
            for task in self._tasks:
                match = task.when.search(text)
                if match and task.message in (None, nth):
                    return task, place + 1, match.groupdict(default="")
            if not GO_ON.search(text):
                return None
        return None

    def _given(self, option: Option, values: Mapping[str, str], heard: Heard) -> Answer:
        offered = {tool.name for tool in heard.tools} if heard.use_tools else set()
        missing = sorted({name for name, _ in option.calls} - offered)
        if missing:
            return self._words(
                f"{SCRIPTED} The next step of my script needs {', '.join(missing)}, which I was not given."
            )
        calls = (Call(name, _arguments(arguments, values)) for name, arguments in option.calls)
        think, say = _filled(option.think, values), _filled(option.say, values)
        pieces: list[Piece] = [*([Think(think)] if think else []), *([Say(say)] if say else []), *calls]
        return Answer(pieces=tuple(pieces), pace=self._pace)

    def _words(self, text: str) -> Answer:
        return Answer(pieces=(Say(text),), pace=self._pace)

    def _introduction(self) -> str:
        can = "\n".join(f"- {task.can}" for task in self._tasks)
        return (
            f"{SCRIPTED} I follow a script and can only do this:\n{can}\n\n"
            "For a model that understands you, run `hermes setup`."
        )


def _named_tool(heard: Heard) -> tuple[Task, int, dict[str, str]] | None:
    """A task that calls the tool which the newest message names, where that message has a value for each of the tool's
    required arguments: so a program can try its own tools without a model."""
    asked = [(n, message.text) for n, message in enumerate(heard.messages) if message.role is Role.USER]
    place, text = asked[-1] if asked else (0, "")
    words = set(re.findall(r"[a-z]+", text.lower()))
    for tool in heard.tools if heard.use_tools else ():
        arguments = _arguments_in(text, tool)
        if arguments and words & set(tool.name.lower().split("_")):
            steps = (
                (Option(calls=((tool.name, arguments),)),),
                (Option(say=f"`{tool.name}` answered:\n\n${{output}}"),),
            )
            return Task(name=tool.name, can="", when=GO_ON, message=None, facts=(OUTPUT,), steps=steps), place + 1, {}
    return None


def _arguments_in(text: str, tool: ToolSchema) -> dict[str, object]:
    """The tool's required arguments as they stand in a message: addresses, quoted words, numbers. Empty where one of
    them is missing."""
    addresses, numbers = ADDRESS.findall(text), NUMBER.findall(ADDRESS.sub(" ", text))
    quoted = [one or other for one, other in QUOTED.findall(text)]
    found: dict[str, object] = {}
    for name in tool.parameters.get("required", ()):
        match tool.parameters["properties"][name].get("type"):
            case "string" if quoted or addresses:
                found[name] = (quoted or addresses).pop(0)
            case "integer" | "number" as kind if numbers:
                number = float(numbers.pop(0))
                found[name] = int(number) if kind == "integer" else number
            case _:
                return {}
    return found


def _rounds(since: Sequence[Message]) -> int:
    """How many rounds of tool calls are behind. One whose outcome is unknown after a crash is done again."""
    calls = sum(bool(message.tool_calls) for message in since)
    open_ends = sum(
        any(isinstance(part, ToolResult) and UNKNOWN_OUTCOME.search(part.text) for part in message.parts)
        for message in since
    )
    return max(0, calls - open_ends)


def _values(task: Task, results: Sequence[ToolResult]) -> dict[str, str]:
    """What the task's patterns find in the results; the newest match of a pattern counts."""
    values: dict[str, str] = {}
    for pattern in task.facts:
        for result in results:
            for match in pattern.finditer(result.text):
                values.update(match.groupdict(default=""))
                break
    return values


def _fits(option: Option, results: Sequence[ToolResult], values: Mapping[str, str]) -> bool:
    last = results[-1] if results else None
    if option.tool and (last is None or last.name != option.tool):
        return False
    if option.result and (last is None or not option.result.search(last.text)):
        return False
    wanted = VALUE.findall(repr((option.think, option.say, option.calls)))
    return all(name in values for name in wanted)


def _is_told(option: Option, heard: Heard) -> bool:
    """Whether the runtime says beside the messages what the option wants to be told."""
    return option.told is None or any(option.told.search(note) for note in heard.notes)


def _filled(template: str, values: Mapping[str, str]) -> str:
    """The template with each `${name}` replaced."""
    return VALUE.sub(lambda found: values[found[1]], template)


def _arguments(template: Mapping[str, object], values: Mapping[str, str]) -> dict[str, object]:
    """The arguments with the texts among them filled in."""
    return {name: _filled(value, values) if isinstance(value, str) else value for name, value in template.items()}
