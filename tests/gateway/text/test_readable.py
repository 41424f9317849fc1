"""Tables and formulas become something that a chat shows."""

from time import perf_counter

import pytest

from hermes_agent.gateway.text.readable import plain_formula, readable, width

TABLE = "| Name | Age |\n|------|----:|\n| **Ann** | 7 |\n| Bo | [x](u) |"


def test_a_table_becomes_aligned_text():
    assert readable(f"See:\n{TABLE}\nDone.") == ("See:\n```\nName  Age\n────  ─────\nAnn   7\nBo    x (u)\n```\nDone.")


def test_a_table_without_outer_lines_is_one_too():
    table = "Name | Age\n--- | :---:\nAnn | 7"

    assert readable(f"See:\n{table}\n\nDone.") == "See:\n```\nName  Age\n────  ───\nAnn   7\n```\n\nDone."
    assert readable("a | b\nc | d") == "a | b\nc | d"
    assert readable("Words\n---\nmore | words") == "Words\n---\nmore | words"


def test_formulas_in_a_table_are_plain_and_aligned():
    table = "| Area | Unit |\n|---|---|\n| $\\pi r^2$ | m |\n| `$x^2$` | $5 |"

    assert readable(table) == "```\nArea   Unit\n─────  ────\nπ r²   m\n$x^2$  $5\n```"


def test_code_in_lists_and_within_other_code_is_left_alone():
    text = f"1. See\n   ~~~\n{TABLE}\n   ~~~\n````\n```\n{TABLE}\n```\n{TABLE}\n````"

    assert readable(text) == text


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


def test_formulas_in_words_are_found():
    assert readable(r"So $x^2$ and \(y\) and $$z_0$$.") == "So `x²` and `y` and `z₀`."
    assert readable("So\n\\begin{align*}\nx &= 1\n\\end{align*}\nit is.") == "So\n`x = 1`\nit is."


@pytest.mark.parametrize(
    "hostile",
    [
        "$$a " + "\\\\ " * 5000 + "b$$",
        "$a" + "_" * 20_000,
        "\\x" + "`" * 20_001 + "a",
    ],
    ids=["rows of nothing", "a formula without an end", "marks of code"],
)
def test_a_text_that_somebody_made_for_it_takes_no_time(hostile):
    began = perf_counter()

    readable(hostile)

    assert perf_counter() - began < 1


@pytest.mark.parametrize(
    ("formula", "plain"),
    [
        (r"x^2 + y_1", "x² + y₁"),
        (r"\frac{a}{b}", "(a)/(b)"),
        (r"\sqrt{\frac{1}{2}}", "√((1)/(2))"),
        (r"\alpha \times \beta \leq \infty", "\N{GREEK SMALL LETTER ALPHA} \N{MULTIPLICATION SIGN} β ≤ ∞"),
        (r"\text{if } x^{abc}", "if x^(abc)"),
        (r"\begin{aligned} x &= 1 \\ y &= 2 \end{aligned}", "x = 1; y = 2"),
        (r"\begin{pmatrix}a & b\\[2pt]c & d\\\end{pmatrix}", "a b; c d"),
        (r"\lim_{n \to \infty} \log x_i", "lim_(n → ∞) log xᵢ"),
        (r"\forall x \in \mathbb{R}: \hat{x} \ll \vec{v}", "∀ x ∈ \N{DOUBLE-STRUCK CAPITAL R}: x̂ ≪ v⃗"),
        (r"\binom{n}{k} = \sqrt[3]{x}", "binom(n, k) = root(3, x)"),
        (r"50\% \& \left\{ a \right\}", "50% & { a }"),
        (r"a^z \unknown \{ \, \}", "a^z \\unknown { }"),
    ],
)
def test_a_formula_is_written_in_plain_signs(formula: str, plain: str):
    assert plain_formula(formula) == plain
