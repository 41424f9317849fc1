"""What is left to answer when messages are deleted."""

from dataclasses import replace

from hermes_agent.agent.withdrawals import Withdrawals
from hermes_agent.core.messages import Text
from tests.agent.test_inbox import letter


def took(*numbers: int) -> tuple[Withdrawals, list[str]]:
    calls: list[str] = []
    back = Withdrawals(overtaken=lambda: calls.append("overtaken"))
    for number in numbers:
        back.took(letter(number, f"words {number}").inbound)
    return back, calls


def test_a_run_is_overtaken_when_each_of_its_messages_was_deleted():
    back, calls = took(1, 2)

    back.announce("1")
    assert calls == []
    back.announce("2")
    assert calls == ["overtaken"]


def test_a_run_that_took_nothing_is_not_overtaken():
    back, calls = took()

    back.announce("1")
    assert calls == []


def test_it_lapses_when_it_has_read_so():
    back, _ = took(1)
    assert not back.lapsed

    back.gone.add("1")
    assert back.lapsed
    back.next_run()
    assert not back.lapsed


def test_answers_are_nothing_to_answer_and_a_new_text_is_the_same_message():
    back, _ = took(1)
    back.took(letter(2, "yes", answers="q").inbound)
    back.took(replace(letter(3, "new").inbound, replaces="1"))
    back.took(letter(4).inbound)

    assert {key: words and words.text for key, words in back.words.items()} == {"1": "new", "4": None}
    assert isinstance(back.words["1"], Text)


def test_nobody_has_to_listen():
    back = Withdrawals()
    back.took(letter(1).inbound)
    back.announce("1")


def test_what_was_read_before_an_interruption_counts():
    back, calls = took(1, 2)

    back.read(["1", "of another run"])
    assert (back.gone, back.lapsed) == ({"1"}, False)
    back.announce("2")
    assert calls == ["overtaken"]
