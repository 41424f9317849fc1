"""A text in pieces: nothing of a secret passes, and everything else does, in time."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator

import pytest

from bench.secret_samples import CONTEXTS, samples
from hermes_agent.core.messages import (
    Delta,
    Message,
    Model,
    ModelRequest,
    Reply,
    Retrying,
    Role,
    StopReason,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    Usage,
)
from hermes_agent.host.secret_rules import hide_keys
from hermes_agent.host.secrets import Redaction
from hermes_agent.providers.redacted import HiddenStream, Redacted

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


class Telling:
    """A model that streams these."""

    name, window = "m", 1000

    def __init__(self, *deltas: Delta | Reply) -> None:
        self._deltas = deltas

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        for delta in self._deltas:
            yield delta


async def test_words_and_thoughts_pass_in_their_order_without_secrets_and_a_void_attempt_leaves_nothing() -> None:
    key = TOKENS["GitHub personal"]
    thought = Thinking(text=f"It is {key}", opaque="signed", maker="x/m")
    message = Message(role=Role.ASSISTANT, parts=(thought, Text(text=f"Use {key}.")))
    reply = Reply(message=message, stop=StopReason.END, usage=Usage(), provider="x", model="m")
    void = (TextDelta(text="Never said"), Retrying(reason="busy", attempt=1, delay=0.0))
    thoughts = (ThinkingDelta(text=f"It is {key[:9]}"), ThinkingDelta(text=key[9:]))
    words = (TextDelta(text=f"Use {key[:20]}"), TextDelta(text=f"{key[20:]}."))
    model: Model = Redacted(Telling(*void, *thoughts, *words, reply), redact)

    seen = [each async for each in model.ask(None)]  # type: ignore[arg-type]  the double reads no request

    told = [(type(each), each.text) for each in seen if isinstance(each, TextDelta | ThinkingDelta)]
    assert told == [
        (TextDelta, "Never "),
        (ThinkingDelta, "It is "),
        (ThinkingDelta, "[secret]"),
        (TextDelta, "Use "),
        (TextDelta, "[secret]."),
    ]
    assert isinstance(seen[-1], Reply)
    assert seen[-1].message.parts == (Thinking(text="It is [secret]"), Text(text="Use [secret]."))
