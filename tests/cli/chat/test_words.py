from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.cli.chat.words import Words


@given(st.lists(st.sampled_from(["one\n", "\n", "- a\n", "```\n", "x", "\n\n"]), max_size=20), st.integers(0, 20))
def test_everything_is_given_once(pieces: list[str], seen: int):
    words, whole = Words(), "".join(pieces)

    given_out = [block for piece in pieces[:seen] for block in words.add(piece)]
    rest, fits = words.finish(whole)

    assert fits
    assert "".join(given_out + rest) == whole


def test_a_reply_that_does_not_go_on_where_the_pieces_stopped_is_given_whole():
    words = Words()
    words.add("one\n\n")

    assert words.finish("uno\n\ndos") == (["uno\n\n", "dos"], False)


def test_a_reply_begins_anew_after_the_last_one_is_finished_or_forgotten():
    words = Words()
    words.add("one\n\ntw")
    assert words.given
    assert words.tail == "tw"

    words.forget()

    assert not words.given
    assert words.tail == ""
    assert words.finish("other") == (["other"], True)
