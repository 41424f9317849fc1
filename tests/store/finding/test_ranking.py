"""The order of what was found."""

from hypothesis import example, given, strategies as some

from hermes_agent.core.messages import Role
from hermes_agent.store.finding.question import understood
from hermes_agent.store.finding.ranking import Counts, Ranking, Run, Spoken, marked, snippet

NOW = 1_715_774_400.0  # 15 May 2024
DAY = 86400.0


def passage(session: str, *texts: str, at: float = 0.0) -> Run:
    spoken = [
        Spoken(session=session, number=number, at=at, role=Role.USER, text=text) for number, text in enumerate(texts, 1)
    ]
    return Run(messages=spoken)


def order(query: str, *passages: Run) -> list[str]:
    question = understood(query, NOW)
    holding = dict.fromkeys((*question.words, *question.required), 1)
    counts = Counts(
        passages=len(passages), messages=sum(len(each.messages) for each in passages), characters=500, holding=holding
    )
    return [each.session for each in Ranking(question, question.words, counts).ranked(passages)]


def test_a_session_about_it_comes_before_one_that_names_it():
    about = passage("about", "a kettle", "the kettle boils", "yes")
    named = passage("named", "a kettle and so many other things that are in the kitchen", "no", "yes")

    assert order("kettle", named, about) == ["about", "named"]


def test_words_in_one_message_come_before_words_far_apart():
    together = passage("together", "red apple", "hm", "hm")
    apart = passage("apart", "red hm", "hm", "apple")

    assert order("red apple", apart, together) == ["together", "apart"]


def test_the_days_asked_for_come_first_then_those_soon_after():
    late = passage("late", "a kettle", at=NOW)
    soon = passage("soon", "a kettle", at=NOW - 25 * DAY)
    then = passage("then", "a kettle", at=NOW - 35 * DAY)

    assert order("kettle 2024-04-10", late, soon, then) == ["then", "soon", "late"]


def test_what_was_said_on_the_days_asked_for_is_found_without_its_words():
    assert order("kettle 2024-05-15", passage("s", "tea", at=NOW)) == ["s"]


def test_a_message_without_the_required_or_with_the_excluded_is_left_out():
    question = understood('"red apple" -worm', NOW)
    counts = Counts(passages=1, messages=3, characters=40, holding={("red", "appl"): 1})

    (found,) = Ranking(question, (), counts).ranked([passage("s", "red apple", "apple red", "red apple worm")])

    assert [each.message.number for each in found.messages] == [1]


def test_a_session_of_several_passages_counts_as_its_best_one():
    first = passage("s", "nothing at all here")
    second = Run(messages=[Spoken(session="s", number=9, at=0.0, role=Role.USER, text="kettle")])

    assert order("kettle", first, second) == ["s"]


def test_messages_without_the_words_count_by_their_length_alone():
    whole = passage("s", "a kettle", "nothing of it at all, but many words")
    part = Run(messages=whole.messages[:1], characters=sum(len(each.text) for each in whole.messages))
    question = understood("kettle", NOW)
    counts = Counts(passages=9, messages=18, characters=500, holding={("kettl",): 1})

    def ranked(run: Run) -> object:
        return Ranking(question, question.words, counts).ranked([run])

    assert ranked(part) == ranked(whole)


def test_the_words_of_a_phrase_apart_are_not_the_phrase():
    question = understood('"red apple"', NOW)
    counts = Counts(passages=1, messages=2, characters=40, holding={("red", "appl"): 1})

    assert Ranking(question, (), counts).ranked([passage("s", "red kettle", "an apple, red")]) == []


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
