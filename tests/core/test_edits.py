"""The text to replace is found exactly, or by the slips that models make; never by guessing between two places."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.edits import plainer, replace
from hermes_agent.core.errors import ToolError

CODE = "class A:\n    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n"


def test_an_exact_match_is_replaced() -> None:
    done = replace(CODE, "return 1", "return 10", everywhere=False)

    assert (done.content, done.count, done.strategy) == (CODE.replace("return 1", "return 10"), 1, "exact")


UNO = "    def uno(self):\n        return 11"
SLIPS = {
    "trailing": ("    def one(self):  \n        return 1\t", UNO),
    "blank lines around": ("\n    def one(self): \n        return 1\n\n", UNO),
    "indentation": ("def one(self):\n    return 1", "def uno(self):\n    return 11"),
    "indentation of the first line": ("def one(self): \n        return 1", "def uno(self):\n        return 11"),
    "spaces": ("  def  one(self):\n   return  1", "  def uno(self):\n      return 11"),
}


@pytest.mark.parametrize(("old", "new"), SLIPS.values(), ids=SLIPS)
def test_slips_of_whitespace_are_overlooked_and_named(old: str, new: str) -> None:
    done = replace(CODE, old, new, everywhere=False)

    assert done.content == CODE.replace("    def one(self):\n        return 1", UNO)
    assert done.strategy.endswith("overlooked")


def test_two_places_are_refused_with_their_lines() -> None:
    with pytest.raises(ToolError, match=r"2 places \(lines 2, 5\)"):
        replace(CODE, "(self):", "():", everywhere=False)


def test_all_places_are_replaced_where_that_is_asked() -> None:
    done = replace(CODE, "(self):", "():", everywhere=True)

    assert done.count == 2
    assert "self" not in done.content


def test_text_that_is_not_there_is_answered_with_what_is_similar() -> None:
    with pytest.raises(ToolError) as caught:
        replace(CODE, "def tow(self):", "x", everywhere=False)

    assert "line 5: def two(self):" in caught.value.hint


def test_blank_lines_alone_are_no_place() -> None:
    with pytest.raises(ToolError):
        replace(CODE, "\n\n\n", "x", everywhere=False)


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("return 1", "return 1")])
def test_a_replacement_that_means_nothing_is_refused(old: str, new: str) -> None:
    with pytest.raises(ToolError):
        replace(CODE, old, new, everywhere=False)


def test_whole_lines_can_be_removed_by_a_match_that_is_not_exact() -> None:
    done = replace("a\n  b\nc\n", "b ", "", everywhere=False)

    assert done.content == "a\nc\n"


@given(st.text("ab \n", max_size=40), st.text("ab \n", min_size=1, max_size=6), st.text("xy\n", max_size=6))
def test_what_stands_around_the_place_is_never_touched(before: str, old: str, new: str) -> None:
    content = f"HEAD\n{before}{old}{before}\nTAIL"
    try:
        done = replace(content, old, new, everywhere=True)
    except ToolError:
        return

    assert done.content.startswith("HEAD")
    assert done.content.endswith("TAIL")
    if done.strategy == "exact":
        assert done.content == content.replace(old, new)


def test_typographic_quotes_and_dashes_are_overlooked() -> None:
    done = replace("a \u201cquoted\u201d \u2013 word\nb\n", 'a "quoted" - word', "x", everywhere=False)

    assert (done.content, done.strategy) == ("x\nb\n", "quotes and dashes overlooked")


BLOCK = "def f(a):\n    one = a + 1\n    two = one * 2\n    return two\n"


def test_a_block_is_found_by_its_first_and_last_line_where_the_middle_is_much_like_it() -> None:
    old = "def f(a):\n    one = a + 1\n    two = one*2  # double\n    return two"

    done = replace(f"x = 1\n{BLOCK}y = 2\n", old, "pass", everywhere=False)

    assert (done.content, done.strategy) == ("x = 1\npass\ny = 2\n", "found by its first and last line")


def test_a_block_with_another_middle_is_not_taken_for_it() -> None:
    old = "def f(a):\n    import os\n    os.remove(a)\n    return two"

    with pytest.raises(ToolError, match="not found"):
        replace(BLOCK, old, "pass", everywhere=False)


def test_two_such_blocks_are_refused() -> None:
    old = "def f(a):\n    one = a + 1\n    two = one*2  # double\n    return two"

    with pytest.raises(ToolError, match="2 places"):
        replace(BLOCK + BLOCK, old, "pass", everywhere=False)


def test_typographic_quotes_dashes_and_spaces_become_plain_ones():
    assert plainer("\u201chi\u201d \u2013 it\u2019s\u00a0ok") == '"hi" - it\'s ok'


@given(st.text())
def test_positions_stay_where_they_are(text: str):
    assert len(plainer(text)) == len(text)
