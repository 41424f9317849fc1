"""A text in pieces: nothing of a secret passes, and everything else does, in time."""

from __future__ import annotations

import random

import pytest

from bench.secret_samples import CONTEXTS, samples
from hermes_agent.host.hidden_stream import HiddenStream
from hermes_agent.host.secret_rules import hide_keys
from hermes_agent.host.secrets import Redaction

KNOWN = Redaction({"correct/horse+battery": "LOGIN"})
TOKENS = {**samples(3), "known": "correct/horse+battery", "hex": b"correct/horse+battery".hex()}


def redact(text: str) -> str:
    return hide_keys(KNOWN.hide(text), lambda label, _: label, "[secret]")


def passed(text: str, most: int, seed: int = 0) -> list[str]:
    """What passes of a text that comes in pieces of up to so many characters."""
    draw, stream, shown, at = random.Random(seed), HiddenStream(redact), [], 0
    while at < len(text):
        size = draw.randint(1, most)
        shown.append(stream.take(text[at : at + size]))
        at += size
    return [*shown, stream.rest()]


@pytest.mark.parametrize("most", [1, 7, 300])
@pytest.mark.parametrize("kind", TOKENS)
def test_what_passes_in_pieces_is_what_passes_at_once(kind: str, most: int) -> None:
    contexts = [put for name, put in CONTEXTS.items() if most > 1 or name in ("bare", "a log", "wrapped")]
    if "PRIVATE" in TOKENS[kind]:  # Where its last line is broken, that line may pass.
        contexts = [put for put in contexts if put is not CONTEXTS["wrapped at 80 columns"]]
    texts = [f"Some words before.\n{put(TOKENS[kind])}\nand some behind." for put in contexts]

    assert [text for text in texts if "".join(passed(text, most)) != redact(text)] == []


def test_ordinary_words_pass_up_to_the_last_and_the_rest_at_the_end() -> None:
    stream = HiddenStream(redact)

    pieces = ("Hel", "lo th", "ere, ", "you\nand", " I ")
    assert [stream.take(piece) for piece in pieces] == ["", "Hello ", "there, ", "", "you\nand I "]
    assert stream.take("go.") == ""
    assert stream.rest() == "go."
    assert stream.take("你好世界") == "你好世界"


def test_a_long_text_passes_whole_and_nothing_waits_for_ever() -> None:
    words = "It is a line of ordinary words, and then another one.\n" * 400

    assert "".join(passed(words, 40)) == words
    assert len("".join(passed("x" * 50_000, 999)[:-1])) > 40_000
