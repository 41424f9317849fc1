"""Formulas of TeX are written in plain signs."""

import pytest

from hermes_agent.gateway.text.formulas import plain_formula


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
