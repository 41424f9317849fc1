"""What is printed."""

from __future__ import annotations

import pytest

from hermes_agent.cli.output import clean, columns, remark, say, say_json, shortened, show, table, width, wrapped


def test_columns_are_aligned_also_with_wide_characters() -> None:
    shown = table([["a", "中文"], ["bbb", "x"], ["é", "1"]], ("K", "V"), right=(1,))

    assert shown == "K       V\na    中文\nbbb     x\né       1"


def test_a_text_cannot_move_the_cursor() -> None:
    assert clean("a\x1b[31mb\r\u202ec\td\n") == "a\ufffd[31mb\ufffd\ufffdc\td\n"
    assert table([["a\nb", "c"]]) == "a b  c"


def test_nothing_to_show_is_nothing() -> None:
    assert table([]) == ""


@pytest.mark.parametrize(("text", "columns", "shown"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("中文字", 4, "中…")])
def test_what_is_too_long_is_cut_visibly(text: str, columns: int, shown: str) -> None:
    assert shortened(text, columns) == shown
    assert width(shown) <= columns


def test_results_and_remarks_go_different_ways(capsys: pytest.CaptureFixture[str]) -> None:
    say("result")
    remark("remark")
    say_json({"a": [1]})

    said = capsys.readouterr()
    assert said.out == 'result\n{\n  "a": [\n    1\n  ]\n}\n'
    assert said.err == "remark\n"


def test_records_are_a_table_of_their_fields() -> None:
    shown = columns((1,), NAME="name", MESSAGES="count", SIGNED_AS=lambda each: each["words"], _="note")

    rows = [
        {"name": "a", "count": 1200, "words": ("x", "y"), "note": ""},
        {"name": "", "count": 3, "words": (), "note": "odd"},
    ]
    assert shown(rows).split("\n") == [
        "NAME  MESSAGES  SIGNED AS",
        "a        1,200  x, y",
        "-            3  -          odd",
    ]


def test_a_result_is_shown_with_its_notes_and_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert show([1], "one", nothing="none", notes=("first",), code=3) == 3
    assert show([], "one", nothing="none") == 0

    said = capsys.readouterr()
    assert (said.out, said.err) == ("one\n", "first\nnone\n")


def test_a_sentence_is_broken_between_words_and_never_in_a_command() -> None:
    text = "Nothing answers here. `hermes setup --no-local` goes on where you left.\nshort"

    assert wrapped(text, 30).split("\n") == [
        "Nothing answers here.",
        "`hermes setup --no-local` goes",
        "on where you left.",
        "short",
    ]
