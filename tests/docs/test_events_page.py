"""docs/events.md tells every event with every field and its type, and the values that fields hold."""

import types
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Literal, Union, get_args, get_origin, get_type_hints

from hermes_agent.core.events import Durable, Event, Live, Seen
from hermes_agent.core.messages import Message, Part, Usage
from tests.docs.pages import code, out_of_step, page, sections, table

PLAIN: dict[object, str] = {str: "text", int: "whole number", float: "number", bool: "true or false"}
LOG, LIVE, RECORDS = "In the log", "Live", "Values"


def kind_of(event: type) -> str:
    """The word in an event's or a part's `kind`; the class's own name for a value that has none."""
    hint = get_type_hints(event).get("kind")
    return str(get_args(hint)[0]) if hint else event.__name__


def words(hint: object) -> str:
    """A type as the manual says it."""
    members = get_args(hint)
    match get_origin(hint):
        case None:
            return PLAIN.get(hint) or named(hint)
        case origin if origin is Literal:
            return ", ".join(f"`{value}`" for value in members)
        case origin if origin is tuple:
            return f"list of {words(members[0])}"
        case origin if origin in (Union, types.UnionType):
            said = " or ".join(words(member) for member in members if member is not types.NoneType)
            return f"{said} or null" if types.NoneType in members else said
        case _:
            return "object"


def named(kind: object) -> str:
    """The values of an enumeration, or the word for a value with fields."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(f"`{value.value}`" for value in kind)
    assert isinstance(kind, type)
    return f"`{kind_of(kind)}`"


def rows_of(record: type) -> list[tuple[str, str]]:
    """Each field with its type; an event in its place holds any of them."""
    hints = get_type_hints(record)
    return [
        (f"`{field.name}`", "an event" if hints[field.name] == Event else words(hints[field.name]))
        for field in fields(record)
        if field.name != "kind"
    ]


def records_in(kinds: Iterable[type]) -> list[type]:
    """The values that fields of these hold, and those in them."""
    hints = [hint for kind in kinds for hint in get_type_hints(kind).values()]
    inside = [each for hint in hints for each in (hint, *get_args(hint)) if isinstance(each, type)]
    found = [each for each in inside if is_dataclass(each)]
    return [*found, *records_in(found)] if found else []


def untrue(text: str, group: str, kinds: Iterable[type]) -> list[str]:
    """What one part of the page says otherwise than the classes."""
    classes = {kind_of(kind): kind for kind in kinds}
    told = sections(sections(text, 2)[group], 3)
    problems = out_of_step(told, classes)
    for name in told.keys() & classes.keys():
        real, said = rows_of(classes[name]), [row[:2] for row in table(told[name], "field")]
        problems += [f"{name}: {row} is not in the manual" for row in real if row not in said]
        problems += [f"{name}: {row} is in the manual and not there" for row in said if row not in real]
    return problems


def live_only() -> list[type]:
    return [kind for kind in get_args(Live) if kind not in get_args(Durable)]


def test_every_event_of_the_log_is_told_with_its_fields():
    assert untrue(page("events.md"), LOG, get_args(Durable)) == []


def test_every_live_event_is_told_with_its_fields():
    assert untrue(page("events.md"), LIVE, live_only()) == []


def test_every_value_that_an_event_holds_is_told_with_its_fields():
    values = dict.fromkeys([Message, Usage, *get_args(Part), *records_in(get_args(Event))])
    assert untrue(page("events.md"), RECORDS, values) == []


def test_a_line_of_json_is_told_with_its_fields():
    assert [row[:2] for row in table(page("events.md"), "key")] == rows_of(Seen)


def test_an_event_that_is_left_out_and_a_field_that_changed_are_found():
    text = page("events.md")
    assert "undone: is not in the manual" in untrue(text.replace("### undone", "Undone"), LOG, get_args(Durable))
    changed = text.replace("| `to` | whole number |", "| `to` | text |")
    assert len(untrue(changed, LOG, get_args(Durable))) == 2
    assert "run_ended" in code(text)
