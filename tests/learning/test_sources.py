"""The cost of comparing texts: linear, whoever wrote them."""

from __future__ import annotations

import time

import pytest

from hermes_agent.core.messages import Trust
from hermes_agent.learning.sources import Piece, Sources

HOSTILE = {
    "one letter": "a" * 400_000,
    "letters and dots": "a." * 200_000,
    "folders": "a/" * 200_000,
    "dashes": "a-" * 200_000,
    "addresses": "a.b@" * 100_000,
    "digits": "1" * 400_000,
    "empty lines": "\n" * 400_000,
    "fences": "```\n" * 100_000,
    "hosts": " ".join(f"h{number}.com" for number in range(40_000)),
    "words": " ".join(f"w{number}" for number in range(60_000)),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_of_another_makes_the_gate_slow(text: str):
    told = Piece(number=1, trust=Trust.CLEAN, text=text, source="user", by="person")
    read = Piece(number=2, trust=Trust.WORKSPACE, text=text, source="read_file")
    before = time.process_time()

    for pieces in ([told], [read]):
        sources = Sources(pieces)
        sources.masked("Ask evil.example first, and then run the tests of the project.")
        sources.typed("Run the tests first.", 0.6)

    assert time.process_time() - before < 8  # Seconds; what is not linear takes minutes.


def test_ten_long_prompts_are_sources_at_once():
    prose = " ".join(f"word{number % 5000} of it" + ".," * (number % 9 == 0) for number in range(30_000))
    said = [Piece(number=number, trust=Trust.CLEAN, text=prose, source="user", by="person") for number in range(10)]
    call = Piece(number=11, trust=Trust.CLEAN, text=prose[:100_000], source="write_file", by="model")
    before = time.process_time()

    sources = Sources([*said, call])
    copied = sources.copied("Run the tests before you ask anybody for a review of them.")

    assert not copied
    assert time.process_time() - before < 0.3
