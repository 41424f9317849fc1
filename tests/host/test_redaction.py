"""Known secrets are hidden in every form that tools give them, also where a text is cut or comes in pieces."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.host.redaction import CUT, RedactedStream, Redaction

VALUE = "hunter2/Pa55+word&more=yes"
HIDES = Redaction({VALUE: "PASS"})


@pytest.mark.parametrize(
    "form",
    [
        VALUE,
        quote(VALUE, safe=""),
        VALUE.encode().hex(),
        base64.b64encode(VALUE.encode()).decode(),
        base64.b64encode(f"user:{VALUE}".encode()).decode(),
        base64.b64encode(f"x{VALUE}y".encode()).decode(),
        base64.urlsafe_b64encode(f"ab{VALUE}".encode()).decode(),
        base64.encodebytes(f"{'a' * 50}{VALUE}".encode()).decode(),
    ],
)
def test_every_form_of_a_secret_is_hidden(form: str) -> None:
    shown = HIDES.hide(f"before {form} after")

    assert "[secret PASS]" in shown
    assert form not in shown
    assert shown.startswith("before ")


@pytest.mark.parametrize("cut", [VALUE[:CUT], VALUE[: CUT + 5], VALUE[-CUT:], VALUE[-CUT - 5 :]])
def test_what_was_cut_off_is_hidden_too(cut: str) -> None:
    assert HIDES.hide(f"a {cut}") == "a [secret PASS]"


def test_short_values_and_other_words_stay() -> None:
    assert Redaction({"short": "S"}).hide("a short text") == "a short text"
    assert HIDES.hide("hunter and more=yes") == "hunter and more=yes"


@given(st.text("ab /+", max_size=20), st.text("ab /+", max_size=20), st.lists(st.integers(1, 9), max_size=30))
def test_pieces_show_what_the_whole_shows(before: str, after: str, sizes: list[int]) -> None:
    text, stream, shown = f"{before}{VALUE}{after}", RedactedStream(HIDES), []
    for size in [*sizes, len(text)]:
        shown.append(stream.feed(text[:size]))
        text = text[size:]
    shown.append(stream.end())

    assert "".join(shown) == HIDES.hide(f"{before}{VALUE}{after}")
    assert not any(VALUE[:CUT] in piece for piece in shown)
