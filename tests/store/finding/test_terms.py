"""Terms: what of a text can be found."""

import re

import apsw
import pytest
from hypothesis import given, strategies as some

from hermes_agent.store.finding.terms import (
    FULL_MESSAGES,
    PassageRow,
    Stems,
    beginnings,
    cut,
    placed,
    roots_of,
    spaced,
    stands_alone,
    stem,
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


WORDS = re.findall(
    r"\w+",
    """
    caresses ponies ties caress cats feed agreed plastered bled motoring sing conflated troubled sized hopping
    tanned falling hissing fizzed failing filing happy sky relational conditional rational valency hesitancy
    digitizer conformably radically differently vilely analogously vietnamization predication operator
    feudalism decisiveness hopefulness callousness formality sensitivity sensibility triplicate formative
    formalize electricity electrical hopeful goodness revival allowance inference airliner gyroscopic
    adjustable defensible irritant replacement adjustment dependent adoption homologous communism activate
    angularity effective bowdlerize probate rate cease controlling rolled yes boy toy syzygy by oyez crying
    vve decision
    """,
)


def test_they_are_the_ones_that_sqlite_makes():
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61')")
    connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)")
    connection.executemany("INSERT INTO t (rowid, x) VALUES (?, ?)", list(enumerate(WORDS)))
    theirs = dict(connection.execute("SELECT doc, term FROM v"))

    assert {word: stem(word) for word in WORDS} == {word: theirs[number] for number, word in enumerate(WORDS)}


@pytest.mark.parametrize(("form", "base"), [("went", "going"), ("bought", "buys"), ("children", "child")])
def test_an_irregular_form_has_the_stem_of_its_base(form: str, base: str):
    assert stem(form) == stem(base)


def test_what_is_not_an_english_word_is_left_as_it_is_and_cut():
    assert [stem(word) for word in ("4321s", "дома", "ab")] == ["4321s", "дома", "ab"]
    assert len(stem("x" * 500)) == 40


def test_stems_are_remembered_up_to_a_limit():
    stems = Stems(most=2)

    assert [stems[word] for word in ("cats", "dogs", "cows", "cats")] == ["cat", "dog", "cow", "cat"]
    assert len(stems) <= 2


def test_every_word_begins_with_a_root_of_its_stem():
    assert [word for word in (*WORDS, "went", "any", "using") if not word.startswith(roots_of(stem(word)))] == []
