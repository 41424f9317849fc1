"""Terms: what of a text can be found."""

from hypothesis import given
from hypothesis import strategies as some

from hermes_agent.store.finding.terms import (
    FULL_MESSAGES,
    PassageRow,
    beginnings,
    cut,
    placed,
    spaced,
    stands_alone,
    surface,
    terms,
)


def test_words_are_stemmed_without_case_or_accents():
    assert terms("Running, the CAFÉS: Übung_macht ﬁnd \uff37\uff49\uff44\uff45") == [
        "run",
        "the",
        "cafe",
        "ubung",
        "macht",
        "find",
        "wide",
    ]


def test_each_character_of_an_unspaced_script_and_each_emoji_is_a_term():
    assert terms("数据a库 데이 カﾅ 🎉🎉!") == ["数", "据", "a", "库", "데", "이", "カ", "ナ", "🎉", "🎉"]
    assert stands_alone("数")
    assert not stands_alone("a")


def test_surface_words_keep_their_endings():
    assert surface("Running cats") == ["running", "cats"]


def test_terms_are_placed_in_the_text_as_it_was_written():
    assert placed("Ein \uff23afé, 数据") == [("ein", 0, 3), ("cafe", 4, 8), ("数", 10, 11), ("据", 11, 12)]


@given(some.text(max_size=80))
def test_any_text_has_terms_without_spaces_quotes_or_capitals(text: str):
    for term in terms(text):
        assert term
        assert not set(term) & set("'\" \0\\")
    assert all(0 <= start < end <= len(text) for _term, start, end in placed(text))


def test_beginnings_find_where_a_word_may_be():
    pattern = beginnings(terms("happy 数据 gone"))

    assert [bool(pattern.search(text)) for text in ("So HAPPILY", "we went", "unhappy", "sad")] == [
        True,
        True,
        False,
        False,
    ]
    assert not beginnings(["数"]).search("any text")


def test_characters_that_stand_alone_can_be_set_apart():
    assert spaced("a数据b") == "a 数  据 b"
    assert spaced("plain words") == "plain words"


def lines(count: int, text: str) -> list[PassageRow]:
    return [PassageRow(number=number, at=float(number), text=text) for number in range(1, count + 1)]


def test_a_short_session_is_one_passage():
    (passage,) = cut("s", lines(3, "two words"))

    assert (passage.first, passage.last, passage.began, passage.ended) == (1, 3, 1.0, 3.0)
    assert (passage.messages, passage.characters) == (3, 27)
    assert passage.terms == ("two", "word") * 3


def test_many_messages_are_several_passages():
    found = list(cut("s", lines(FULL_MESSAGES + 1, "hm")))

    assert [(each.first, each.last) for each in found] == [(1, 40), (41, 41)]


def test_long_messages_fill_a_passage_sooner():
    found = list(cut("s", lines(3, "x" * 4000)))

    assert [(each.first, each.last) for each in found] == [(1, 2), (3, 3)]
