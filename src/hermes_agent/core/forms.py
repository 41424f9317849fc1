"""Forms: the typed fields of a question, and how words or a JSON object become their values."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, assert_never

from hermes_agent.core.dataclass import dataclass

FieldType: TypeAlias = Literal["text", "number", "integer", "boolean", "choice", "choices"]
DECLINE, SKIP, DEFAULT = "decline", "skip", "default"
"""What a person may say besides a value: to the whole form, to a field that may stay empty, to one with a default."""
TRUE, FALSE = frozenset({"yes", "y", "true", "1", "on"}), frozenset({"no", "n", "false", "0", "off"})
MOST_CHOICES = 20
"""Choices that are shown as such; of more only the text tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A value that a form asks for. `default` is JSON (empty: none), `choices` are the values of `choice` and
    `choices`, `labels` their names for a person, in the same order (empty: the values themselves)."""

    name: str
    title: str = ""
    type: FieldType = "text"
    choices: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    default: str = ""
    required: bool = False


class WrongAnswer(Exception):
    """The words are no value of the field; the text says why."""


class Form:
    """The values of `fields`, taken field by field or all at once from a JSON object. `is_declined`: the person wants
    to give none."""

    def __init__(self, text: str, fields: Sequence[Field]) -> None:
        self._text = text
        self.open = tuple(fields)
        self._values: dict[str, Any] = {}
        self._wrong = ""
        self._asked = 0
        self.is_declined = False

    @property
    def text(self) -> str:
        """What to ask now: what was wrong, the form's own text before the first field, and the next field."""
        head = self._wrong or (self._text if not self._asked else "")
        return "\n".join(filter(None, (head, _question(self.open[0]))))

    @property
    def choices(self) -> tuple[str, ...]:
        """What may be chosen for the next field."""
        field = self.open[0]
        named = ("yes", "no") if field.type == "boolean" else (field.labels or field.choices)
        named = () if field.type == "choices" or len(named) > MOST_CHOICES else named
        other = (DEFAULT,) if field.default else () if field.required else (SKIP,)
        return (*named, *other, DECLINE)

    @property
    def written(self) -> str:
        """The values as a JSON object."""
        return json.dumps(self._values, ensure_ascii=False)

    def take(self, words: str) -> None:
        """Take a person's words for the next field, or a JSON object for all. What does not fit is asked again."""
        self._asked += 1
        self._wrong = ""
        said = words.strip()
        if said.lower() == DECLINE:
            self.is_declined, self.open = True, ()
            return
        try:
            self._take_all(given) if (given := _object(said)) is not None else self._take_one(said)
        except WrongAnswer as wrong:
            self._wrong = str(wrong)

    def _take_one(self, said: str) -> None:
        field, *rest = self.open
        if field.default and said.lower() in ("", DEFAULT):
            self._values[field.name] = json.loads(field.default)
        elif said.lower() not in ("", SKIP) or field.required:
            self._values[field.name] = value_of(field, said)
        self.open = tuple(rest)

    def _take_all(self, given: Mapping[str, Any]) -> None:
        if unknown := [name for name in given if name not in {field.name for field in self.open}]:
            raise WrongAnswer(f"There is no field {unknown[0]!r:.60} here.")
        values = {}
        for field in self.open:
            if field.name in given:
                values[field.name] = checked(field, given[field.name])
            elif field.default:
                values[field.name] = json.loads(field.default)
            elif field.required:
                raise WrongAnswer(f"{field.name} is missing.")
        self._values |= values
        self.open = ()


def value_of(field: Field, said: str) -> str | int | float | bool | list[str]:
    """The value that words mean. Raises `WrongAnswer`."""
    match field.type:
        case "boolean":
            if said.lower() not in TRUE | FALSE:
                raise WrongAnswer(f"{said!r:.60} is neither yes nor no.")
            return said.lower() in TRUE
        case "integer" | "number":
            return _number(field.type, said)
        case "choice":
            return _chosen(field, said)
        case "choices":
            return [_chosen(field, each.strip()) for each in said.split(",") if each.strip()]
        case "text":
            if not said:
                raise WrongAnswer(f"{field.name} may not be empty.")
            return said
        case _:
            assert_never(field.type)


def checked(field: Field, value: object) -> object:
    """The JSON value, where it fits the field. Raises `WrongAnswer`."""
    match field.type:
        case "boolean":
            fits = isinstance(value, bool)
        case "integer":
            fits = isinstance(value, int) and not isinstance(value, bool)
        case "number":
            fits = type(value) is int or (isinstance(value, float) and math.isfinite(value))
        case "choice":
            fits = value in field.choices
        case "choices":
            fits = isinstance(value, list) and all(each in field.choices for each in value)
        case "text":
            fits = isinstance(value, str)
        case _:
            assert_never(field.type)
    if not fits:
        raise WrongAnswer(f"{json.dumps(value)[:60]} is no {field.type} for {field.name}.")
    return value


def _question(field: Field) -> str:
    title = field.title or field.name
    wanted = {"integer": " (a whole number)", "number": " (a number)", "choices": " (one or more, with commas)"}
    several = f": {', '.join(field.labels or field.choices)}" if field.type == "choices" else ""
    usual = f" [default: {field.default}]" if field.default else ""
    return f"{title}{wanted.get(field.type, '')}{several}{usual}"


def _chosen(field: Field, said: str) -> str:
    named = dict(zip((label.lower() for label in field.labels), field.choices, strict=False))
    values = {choice.lower(): choice for choice in field.choices}
    numbers = {str(number): choice for number, choice in enumerate(field.choices, 1)}
    for known in (values, named, numbers):
        if said.lower() in known:
            return known[said.lower()]
    raise WrongAnswer(f"{said!r:.60} is none of: {', '.join(field.labels or field.choices)}.")


def _number(kind: Literal["integer", "number"], said: str) -> int | float:
    try:
        found = int(said) if kind == "integer" else float(said)
        if math.isfinite(found):
            return found
    except (ValueError, OverflowError):
        pass
    raise WrongAnswer(f"{said!r:.60} is not a {'whole ' if kind == 'integer' else ''}number.")


def _object(said: str) -> Mapping[str, Any] | None:
    if not said.startswith("{"):
        return None
    try:
        found = json.loads(said)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
