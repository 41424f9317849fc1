"""Snippets: the words around what was found."""

from hypothesis import example, given
from hypothesis import strategies as some

from hermes_agent.store.finding.snippets import marked, snippet


def test_a_snippet_shows_the_words_around_what_was_found():
    text = f"{'a ' * 200}needle {'b ' * 200}"

    line, marks = snippet(text, [("needl",)])

    assert line.startswith("…")
    assert line.endswith("…")
    assert len(line) <= 182
    assert [line[first:last] for first, last in marks] == ["needle"]


def test_it_is_where_most_of_the_phrases_are():
    text = f"red {'x ' * 300} red apple {'y ' * 300}"

    line, _marks = snippet(text, [("red",), ("appl",)])

    assert "red apple" in line


def test_phrases_are_marked_as_a_whole_and_overlaps_once():
    line, marks = snippet("我们的数据库\n坏了, red  dogs", [("数", "据"), ("据", "库"), ("red", "dog")])

    assert marked(line, marks) == "我们的**数据****库** 坏了, **red  dogs**"


def test_without_a_hit_it_is_how_the_text_begins():
    assert snippet("short", [("missing",)]) == ("short", ())


@given(some.text(max_size=300), some.text(min_size=1, max_size=5))
@example("a", "*")
def test_marks_are_inside_the_line(text: str, word: str):
    line, marks = snippet(text, [(word,)])

    assert all(0 <= first < last <= len(line) for first, last in marks)


def test_a_word_inside_a_phrase_is_marked_with_it_alone():
    line, marks = snippet("数据", [("数", "据"), ("据",)])

    assert marked(line, marks) == "**数据**"
