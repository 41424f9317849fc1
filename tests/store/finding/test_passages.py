"""Passages: sessions cut where they are long enough."""

from hermes_agent.store.finding.passages import FULL_MESSAGES, PassageRow, cut


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
