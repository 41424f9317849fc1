"""Replies without the fence, streamed in whatever pieces."""

import pytest

from hermes_agent.memory.recall import Strainer

TEXT = "Before <memory-context>\nsecret < x\n</memory-context> after, 1 < 2 <memory"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_nothing_between_the_marks_passes_whatever_the_pieces(size: int):
    strainer = Strainer()

    passed = "".join(strainer.take(TEXT[place : place + size]) for place in range(0, len(TEXT), size))

    assert (passed + strainer.rest()).replace(">", "") == "Before  after, 1 < 2 <memory"
    assert "secret" not in passed


def test_a_fence_that_never_ends_shows_nothing_of_it():
    strainer = Strainer()

    assert strainer.take("A<memory-context>secret") + strainer.rest() == "A"


def test_words_without_a_mark_are_not_held_back():
    assert Strainer().take("Just words.") == "Just words."
