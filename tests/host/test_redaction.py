"""Known secrets are hidden in every form that tools give them, also where a text is cut."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from hermes_agent.host.redaction import CUT, Redaction

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
