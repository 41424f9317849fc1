"""Heads, tails, and text as a screen would show it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.tools.excerpt import Caps, cleaned, fits, head_and_tail, is_binary


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("\x1b[1;31mred\x1b[0m\n", "red\n"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10%\r50%\r100%\ndone", "100%\ndone"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("bell\x07 nul\0 tab\t", "bell\ufffd nul\ufffd tab\t"),
        ("plain käse", "plain käse"),
    ],
)
def test_text_is_cleaned_of_what_only_a_terminal_understands(raw: str, seen: str) -> None:
    assert cleaned(raw) == seen


@pytest.mark.parametrize(
    ("sample", "binary"),
    [(b"text", False), (b"", False), (b"a\0b", True), (bytes(range(128, 255)), True), (b"caf\xe9 with text", False)],
)
def test_output_that_is_no_text_is_known(sample: bytes, binary: bool) -> None:
    assert is_binary(sample) is binary


def test_both_caps_count() -> None:
    caps = Caps(max_bytes=10, max_lines=3)

    assert fits("a\nb\nc", caps)
    assert not fits("a\nb\nc\nd", caps)
    assert not fits("ä" * 6, caps)


def test_the_beginning_and_the_end_are_kept() -> None:
    text = "\n".join(str(number) for number in range(100))

    shown = head_and_tail(text, text, Caps(max_bytes=1000, max_lines=7), left_out="[...]")

    assert shown == "0\n1\n2\n[...]\n97\n98\n99"


@given(st.text(max_size=300), st.integers(40, 200), st.integers(3, 20))
def test_the_caps_hold_for_any_text(text: str, most: int, lines: int) -> None:
    caps = Caps(max_bytes=most, max_lines=lines)

    shown = head_and_tail(text, text, caps, left_out="[left out]")

    assert len(shown.encode()) <= most
    assert shown.count("\n") < lines
