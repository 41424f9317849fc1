"""Stems are those of Porter's algorithm, as SQLite's own tokenizer makes them."""

import re

import apsw
import pytest

from hermes_agent.store.finding.stems import Stems, roots_of, stem

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
