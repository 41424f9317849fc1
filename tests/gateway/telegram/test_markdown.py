"""Markdown becomes what Telegram understands, and shows the same words."""

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.gateway.telegram.markdown import UNMEANT, formatted, unmeant
from tests.doubles.telegram_words import unformatted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. Done!", r"1\. Done\!"),
        ("**bold** and *it* and _it_ and ~~gone~~", "*bold* and _it_ and _it_ and ~gone~"),
        ("__heavy__", "*heavy*"),
        ("# A **title**", "*A title*"),
        ("- one\n  - two", "• one\n  • two"),
        ("> said.", r">said\."),
        ("`a_b` and ``c`d``", r"`a_b` and `c\`d`"),
        ("[the *manual*](https://e.org/a_(b))", r"[the _manual_](https://e.org/a_(b\))"),
        ("[no address]()", "no address"),
        ("[Ann](tg://user?id=1) and [b](TG:x)", r"Ann \(tg://user?id\=1\) and b \(TG:x\)"),
        ("```python\nx = `1`\n```", "```python\nx = \\`1\\`\n```"),
        ("```\nnever closed", "```\nnever closed\n```"),
        ("````md\n```py\nx\n```\n````", "```md\n\\`\\`\\`py\nx\n\\`\\`\\`\n```"),
        ("1. a\n   ~~~c++ x=1\n   b\n   ~~~", "1\\. a\n```c++\nb\n```"),
        ("**a *b* c**", "*a _b_ c*"),
        ("2 * 3 * 4 and snake_case_name", r"2 \* 3 \* 4 and snake\_case\_name"),
        ("ask @everybody or a@b.org", rf"ask {UNMEANT}everybody or a@b\.org"),
    ],
)
def test_formatting_is_kept_and_every_other_sign_escaped(text: str, expected: str):
    assert formatted(text) == expected


def test_names_that_leave_no_room_for_a_sign_more_get_another_sign():
    text = "@ann " * 800

    shown = unformatted(formatted(text))
    assert len(shown) <= 4096
    assert "@" not in shown
    assert unmeant("ask @ann") == f"ask {UNMEANT}ann"
    assert "@" not in unmeant(text)
    assert UNMEANT not in formatted("```\n@cached\n```")


@given(st.text(alphabet=st.sampled_from("ab _*[]()~`>#+-=|{}.!\\\n@1"), max_size=80))
def test_whatever_is_written_is_understood(text: str):
    shown = unformatted(formatted(text))

    assert shown.count("a") + shown.count("b") <= text.count("a") + text.count("b") + 8


def test_marks_of_code_without_an_end_take_no_time():
    began = perf_counter()

    assert formatted("x" + "`" * 4001 + "a") == "x" + "\\`" * 4001 + "a"

    assert perf_counter() - began < 1
