"""What is printed."""

from __future__ import annotations

import pytest

from hermes_agent.cli.output import clean, remark, say, say_json, shortened, table, width


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
