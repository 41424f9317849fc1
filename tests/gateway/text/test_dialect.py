"""A dialect is a record: the same Markdown in two markups."""

import pytest

from hermes_agent.gateway.text.dialect import Dialect, rendered

PLAIN = Dialect(escape=str, code=str.upper, link=lambda shown, address: f"{shown} <{address}>")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**a *b* c** ~~d~~", "*a _b_ c* ~d~"),
        ("# A `b`\n> c\n- d", "*A `B`*\n> c\n• d"),
        ("[a](b) [c]()", "a <b> c"),
        ("```py\nx\n```\nnever `closed", "```\nX\n```\nnever `closed"),
    ],
)
def test_a_record_says_how_it_looks(text: str, shown: str):
    assert rendered(text, PLAIN) == shown
