from hypothesis import given, strategies as st
from wcwidth import wcswidth

from hermes_agent.cli.chat.text import CONTROL, DIM, RED, clean, elapsed, hanging, one_line, paint, plain, wrapped


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text: str):
    assert not CONTROL.search(clean(text))


def test_a_sequence_leaves_as_a_whole():
    assert clean("a\x1b[31mred\x1b[0m b\x1b]0;title\x07c\x1b[2Jd\x08e") == "ared bcde"
    assert clean("one\r\ntwo\rthree\tfour") == "one\ntwo\nthree\tfour"
    assert clean("a\u202eb") == "ab"


@given(st.text(), st.integers(4, 60))
def test_one_line_is_one_line_that_fits(text: str, columns: int):
    line = one_line(text, columns)
    assert "\n" not in line
    assert wcswidth(line) <= columns


def test_one_line_counts_cells():
    assert one_line("日本語の\nテキスト", 9) == "日本語の…"


def test_words_are_wrapped_by_cells():
    assert wrapped("日本 日本 日本\nx", 9) == ["日本 日本", "日本", "x"]
    assert wrapped("longerthanthat a", 5) == ["longerthanthat", "a"]


def test_long_lines_of_a_table_are_broken_between_words_below_their_column():
    assert hanging("/tools  List the tools.\n/x      one two three", 16).split("\n") == [
        "/tools  List the",
        "        tools.",
        "/x      one two",
        "        three",
    ]
    assert hanging("- one two three", 9).split("\n") == ["- one two", "  three"]
    assert hanging("one two three", 8).split("\n") == ["one two", "three"]


def test_a_diff_is_not_broken():
    diff = "@@ -1 +1 @@\n+one two three"
    assert hanging(diff, 6) == diff


def test_paint_colours_each_line_and_plain_takes_it_off():
    painted = paint("one\n\ntwo", DIM, RED)
    assert painted == "\x1b[2;31mone\x1b[0m\n\n\x1b[2;31mtwo\x1b[0m"
    assert plain(painted) == "one\n\ntwo"


def test_times_are_for_people():
    assert [elapsed(seconds) for seconds in (0.04, 9.94, 12.9, 185.0)] == ["0.0 s", "9.9 s", "12 s", "3 min 05 s"]
