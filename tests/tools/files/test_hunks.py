"""A hunk goes where it is meant, and nowhere where that is not clear."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.core.errors import ToolError
from hermes_agent.tools.files.hunks import apply_hunks
from hermes_agent.tools.files.patches import Hunk, parse_patch

LINES = st.lists(st.sampled_from(["", "a", "b", "  c", "d e", "\tf"]), max_size=30)


def hunk(*rows: str, **more: object) -> Hunk:
    return Hunk(rows=tuple((row[0], row[1:]) for row in rows), **more)


@given(LINES, LINES)
def test_any_diff_makes_the_new_text_of_the_old(old: list[str], new: list[str]):
    before, after = "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)
    diff = "\n".join(difflib.unified_diff(old, new, "a/x", "b/x", lineterm=""))
    if old and new and diff:
        assert apply_hunks(before, parse_patch(diff)[0].hunks, "x") == (after, "")


def test_lines_that_stay_keep_the_files_own_spaces_and_new_ones_are_indented_like_them():
    done, note = apply_hunks("class A:\n    x = 1   \n    y = 2\n", [hunk(" x = 1", "-y = 2", "+y = 3", "+z = 4")], "a")

    assert done == "class A:\n    x = 1   \n    y = 3\n    z = 4\n"
    assert note == "indentation overlooked"


def test_typographic_quotes_are_overlooked():
    assert apply_hunks("say \u201chi\u201d\n", [hunk('-say "hi"', "+bye")], "a")[0] == "bye\n"


def test_lines_that_stand_twice_are_refused_unless_the_place_is_told():
    text = "def a():\n    pass\ndef b():\n    pass\n"
    change = ("-    pass", "+    return")

    with pytest.raises(ToolError, match=r"at 2 places .lines 2, 4."):
        apply_hunks(text, [hunk(*change)], "a")
    assert apply_hunks(text, [hunk(*change, anchor="def b():")], "a")[0] == "def a():\n    pass\ndef b():\n    return\n"
    assert apply_hunks(text, [hunk(*change, line=4)], "a")[0].endswith("def b():\n    return\n")


def test_lines_are_added_after_their_anchor_or_at_the_end():
    assert apply_hunks("a\nb\n", [hunk("+x", anchor="a")], "f")[0] == "a\nx\nb\n"
    assert apply_hunks("a\nb\n", [hunk("+x")], "f")[0] == "a\nb\nx\n"


@pytest.mark.parametrize("wrong", [hunk("-nope", "+x"), hunk("+x", anchor="nope")])
def test_what_is_not_there_is_said(wrong: Hunk):
    with pytest.raises(ToolError, match=r"nope.* not found|not found: `nope`"):
        apply_hunks("a\n", [wrong], "f")
