"""Tools are found by words of their names, descriptions and parameters."""

from __future__ import annotations

import pytest

from hermes_agent.tools.schema import from_function
from hermes_agent.tools.search import ranked

TOOLS = tuple(
    from_function(name, lambda: "", description)
    for name, description in (
        ("calendar_create_event", "Put an event into a calendar."),
        ("calendar_list_events", "Show what is in the calendar between two days."),
        ("image_generate", "Draw a picture from a description."),
        ("text_to_speech", "Say a text aloud and save the audio."),
        ("kanban_create", "Put a task on the board."),
    )
)


def names(query: str) -> list[str]:
    return [tool.schema.name for tool in ranked(query, TOOLS)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create events", "calendar_create_event"),
        ("draw pictures", "image_generate"),
        ("speech", "text_to_speech"),
        ("add a task to the kanban board", "kanban_create"),
        ("listing calendar", "calendar_list_events"),
    ],
)
def test_the_tool_that_fits_comes_first(query: str, first: str) -> None:
    assert names(query)[0] == first


def test_what_shares_no_word_is_not_found() -> None:
    assert names("weather in Ulm") == []


def test_no_tools_are_no_error() -> None:
    assert ranked("anything", ()) == []
