"""Tables and formulas become something that a chat shows."""

import pytest

from hermes_agent.gateway.text.readable import plain_formula, readable, width

TABLE = "| Name | Age |\n|------|----:|\n| **Ann** | 7 |\n| Bo | [x](u) |"


def test_a_table_becomes_aligned_text():
    assert readable(f"See:\n{TABLE}\nDone.") == ("See:\n```\nName  Age\n────  ─────\nAnn   7\nBo    x (u)\n```\nDone.")


def test_a_wide_table_becomes_a_list():
    wide = f"| Name | Words |\n|---|---|\n| Ann | {'w' * 70} |\n|  | {'v' * 70} |"

    assert readable(wide) == f"• **Ann**\n  Words: {'w' * 70}\n• **-**\n  Words: {'v' * 70}"


def test_a_wide_table_without_rows_is_its_head():
    assert readable(f"| {'a' * 40} | {'b' * 40} |\n|---|---|") == f"{'a' * 40} · {'b' * 40}"


def test_wide_letters_are_counted_as_two_columns():
    assert width("日本") == 4
    assert width("e\N{COMBINING ACUTE ACCENT}") == 1


def test_code_is_left_alone():
    text = f"```\n{TABLE}\n$x^2$\n```\nand `$y_1$`"

    assert readable(text) == text


def test_prices_are_no_formulas():
    text = "It costs $5 and then $10 more, $HOME is a folder."

    assert readable(text) == text


@pytest.mark.parametrize(
    ("formula", "plain"),
    [
        (r"x^2 + y_1", "x² + y₁"),
        (r"\frac{a}{b}", "(a)/(b)"),
        (r"\sqrt{\frac{1}{2}}", "√((1)/(2))"),
        (r"\alpha \times \beta \leq \infty", "\N{GREEK SMALL LETTER ALPHA} \N{MULTIPLICATION SIGN} β ≤ ∞"),
        (r"\text{if } x^{abc}", "if x^(abc)"),
        (r"a^z \unknown \{ \, \}", "a^z \\unknown { }"),
    ],
)
def test_a_formula_is_written_in_plain_signs(formula: str, plain: str):
    assert plain_formula(formula) == plain


def test_formulas_in_words_are_found():
    assert readable(r"So $x^2$ and \(y\) and $$z_0$$.") == "So `x²` and `y` and `z₀`."
