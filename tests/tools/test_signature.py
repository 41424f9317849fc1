"""What a model may say of a call, and what is made of it."""

from __future__ import annotations

from typing import Literal

import pytest

from hermes_agent.core.errors import BadArguments
from hermes_agent.tools.schema import Unusable, signature_of


def book(room: int, view: Literal["sea", "yard"] = "sea", guests: list[str] | None = None) -> None:
    """Book a room
    for a night.

    At most two.

    Args:
        room: its number
    """


def test_lines_of_a_paragraph_are_joined_and_paragraphs_kept() -> None:
    assert signature_of(book).description == "Book a room for a night.\nAt most two."


def test_a_choice_says_that_it_is_text() -> None:
    view = signature_of(book).parameters["properties"]["view"]

    assert view == {"type": "string", "enum": ["sea", "yard"], "default": "sea"}


def test_a_parameter_that_may_be_left_out_does_not_offer_null_but_takes_it() -> None:
    signature = signature_of(book)

    assert signature.parameters["properties"]["guests"] == {"type": "array", "items": {"type": "string"}}
    assert signature.check({"room": 1, "guests": None})["guests"] is None


def test_defaults_are_filled_in() -> None:
    assert signature_of(book).check({"room": 1}) == {"room": 1, "view": "sea", "guests": None}


def test_a_name_and_description_may_be_given_from_outside() -> None:
    signature = signature_of(book, name="reserve", description="Reserve")

    assert (signature.name, signature.description) == ("reserve", "Reserve")
    with pytest.raises(BadArguments, match="reserve"):
        signature.check({})


def test_a_function_that_takes_anything_has_no_schema() -> None:
    def anything(*values: str) -> None: ...

    with pytest.raises(Unusable, match="values"):
        signature_of(anything)


def test_json_that_does_not_parse_is_left_for_the_error_to_name() -> None:
    with pytest.raises(BadArguments, match=r"`\$.guests`"):
        signature_of(book).check({"room": 1, "guests": "[broken"})
