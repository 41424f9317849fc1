"""A diff says what changed where, in bounded space and time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.tools.files.diff import unified

LINES = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=30)


def test_a_change_is_shown_with_its_place_in_the_file() -> None:
    before = "\n".join(str(number) for number in range(100))

    shown = unified(before, before.replace("50", "fifty"), "n.txt")

    assert shown.splitlines()[:3] == ["--- a/n.txt", "+++ b/n.txt", "@@ -48,7 +48,7 @@"]
    assert "-50" in shown.splitlines()
    assert "+fifty" in shown.splitlines()


def test_equal_texts_have_no_diff() -> None:
    assert unified("a\nb", "a\nb", "x") == ""


def test_a_long_diff_is_cut_and_says_so() -> None:
    before = "\n".join(f"old {number}" for number in range(400))

    shown = unified(before, before.replace("old", "new"), "x").splitlines()

    assert len(shown) == 201
    assert shown[-1].endswith("more lines of diff]")


def test_thousands_of_changed_lines_are_only_counted() -> None:
    before = "\n".join(f"old {number}" for number in range(50_000))

    assert unified(before, before.replace("old", "new"), "x") == "[50,000 lines became 50,000, from line 1]"


@given(LINES, LINES)
def test_patch_makes_the_new_text_of_the_old_one(before: list[str], after: list[str]) -> None:
    old, new = "".join(f"{line}\n" for line in before), "".join(f"{line}\n" for line in after)
    shown = unified(old, new, "x")
    if not shown:
        assert old == new
        return

    assert applied(old, shown) == new


def applied(old: str, diff: str) -> str:
    """What the diff makes of the text, read as any patch program reads it."""
    source, out, position = old.split("\n"), [], 0
    for row in diff.splitlines()[2:]:
        if row.startswith("@@"):
            first, _, count = row.split()[1][1:].partition(",")
            start = int(first) - (count != "0")
            out += source[position:start]
            position = start
        elif row[:1] == "+":
            out.append(row[1:])
        else:
            assert source[position] == row[1:]
            position += 1
            out += [row[1:]] if row[:1] == " " else []
    return "\n".join([*out, *source[position:]])
