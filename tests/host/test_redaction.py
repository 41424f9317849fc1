"""Known secrets are hidden in every form that tools give them, also where a text is cut."""

from __future__ import annotations

import base64
import hashlib
import time
import timeit
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.host.redaction import CUT, LARGE, Redaction, _forms, as_long

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


@pytest.mark.parametrize(
    "text",
    [
        f"a {VALUE} b",
        base64.b64encode(f"x{VALUE}".encode()).decode(),
        f"{VALUE[:6]}\n{VALUE[6:]}",
        f"cut off {VALUE[:-2]}",
        f"ü {VALUE} \udcff {VALUE}",
    ],
)
def test_a_mask_hides_what_is_hidden_and_has_as_many_bytes(text: str) -> None:
    masked = HIDES.hide(text, as_long)

    assert HIDES.hide(masked) == masked != text
    assert len(masked.encode("utf-8", "surrogateescape")) == len(text.encode("utf-8", "surrogateescape"))


def test_a_label_is_filled_up_to_the_bytes_of_what_it_hides() -> None:
    assert as_long("[secret A]", "12345678") == "[secret]"
    assert as_long("[secret A]", "1234567") == "*******"
    assert as_long("[secret A]", "üüüüüü") == "[secret A]**"


@given(
    st.sampled_from([*_forms(VALUE), VALUE[:CUT], VALUE[-CUT:], "shorter89", "more of other words than secrets"]),
    st.integers(0, 16),
    st.sampled_from(["", "\n", "ü", "\udcff", "\r\n"]),
    st.integers(0, 30),
)
def test_a_large_text_is_hidden_as_a_small_one(form: str, before: int, between: str, at: int) -> None:
    both = Redaction({VALUE: "PASS", "shorter89": "SHORT"})
    text = f"{'x' * before}{form[:at]}{between}{form[at:]}y"

    assert both.hide(" " * LARGE + text, as_long) == " " * LARGE + both.hide(text, as_long)


def test_how_long_it_takes_to_find_nothing_does_not_grow_with_the_secrets() -> None:
    text = "2026-01-01 12:00:00 INFO what happened in this module is of no interest\n" * 30_000

    def seconds(count: int) -> float:
        hides = Redaction({hashlib.sha256(b"%d" % number).hexdigest(): f"K{number}" for number in range(count)})
        return min(timeit.repeat(lambda: hides.hide(text), timer=time.process_time, number=1, repeat=5))

    assert seconds(32) < 3 * seconds(1)
