"""Formulas of TeX in plain signs, for where nobody draws them."""

from __future__ import annotations

import re
from collections.abc import Callable

WRITTEN = """
alpha=α beta=β gamma=γ delta=δ epsilon=ε varepsilon=ε zeta=ζ eta=η theta=θ kappa=κ lambda=λ mu=μ nu=ν xi=ξ pi=π
rho=ρ sigma=σ tau=τ phi=φ varphi=φ chi=χ psi=ψ omega=ω Gamma=Γ Delta=Δ Theta=Θ Lambda=Λ Xi=Ξ Pi=Π Sigma=Σ Phi=Φ
Psi=Ψ Omega=Ω times=× cdot=· div=÷ pm=± mp=∓ ast=∗ circ=∘ bullet=• oplus=⊕ otimes=⊗ leq=≤ le=≤ geq=≥ ge=≥ ll=≪
gg=≫ neq=≠ ne=≠ approx=≈ equiv=≡ sim=∼ simeq=≃ propto=∝ infty=∞ sum=∑ prod=∏ int=∫ iint=∬ oint=∮ partial=∂
nabla=∇ to=→ rightarrow=→ longrightarrow=→ mapsto=↦ Rightarrow=⇒ implies=⇒ leftarrow=← gets=← Leftarrow=⇐
leftrightarrow=↔ Leftrightarrow=⇔ iff=⇔ uparrow=↑ downarrow=↓ in=∈ notin=∉ ni=∋ subset=⊂ subseteq=⊆ supset=⊃
supseteq=⊇ cup=∪ cap=∩ setminus=∖ emptyset=∅ varnothing=∅ forall=∀ exists=∃ neg=¬ lnot=¬ land=∧ wedge=∧ lor=∨
vee=∨ mid=| parallel=∥ perp=⊥ angle=∠ therefore=∴ because=∵ ldots=… dots=… cdots=⋯ vdots=⋮ prime=′ hbar=ℏ ell=ℓ
Re=ℜ Im=ℑ langle=⟨ rangle=⟩ lceil=⌈ rceil=⌉ lfloor=⌊ rfloor=⌋ lvert=| rvert=| lVert=‖ rVert=‖ top=⊤ bot=⊥
degree=° left= right= big= Big= bigl= bigr= displaystyle= textstyle= limits= nolimits=
"""
SIGNS = dict(pair.split("=", 1) for pair in WRITTEN.split()) | {"quad": "  ", "qquad": "    "}
SPOKEN = """
sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp lim max min sup inf arg det dim ker
gcd deg Pr mod
"""
NAMES = frozenset(SPOKEN.split())
"""Functions whose name stands for them."""
DOUBLED = dict(zip("RNZQCPEH", "ℝℕℤℚℂℙ𝔼ℍ", strict=True))
ACCENTS = {
    "hat": "\N{COMBINING CIRCUMFLEX ACCENT}",
    "bar": "\N{COMBINING MACRON}",
    "overline": "\N{COMBINING OVERLINE}",
    "vec": "\N{COMBINING RIGHT ARROW ABOVE}",
    "tilde": "\N{COMBINING TILDE}",
    "dot": "\N{COMBINING DOT ABOVE}",
    "ddot": "\N{COMBINING DIAERESIS}",
}
ABOVE = dict(zip("0123456789+-=()niT", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵀ", strict=True))
BELOW = dict(zip("0123456789+-=()aeijknmx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₙₘₓ", strict=True))
GROUP = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
WORDS = r"\\(?:text|mathrm|mathbf|mathit|mathcal|mathsf|boldsymbol|bm|operatorname|boxed)\*?"
SPECIAL = re.compile(r"[\\&^_]")
FRAMES = re.compile(r"\\(?:begin|end)\{\w+\*?\}(?:\{[lcr|]+\})?")
DEEPEST = 4
"""Fractions and roots within each other."""


def plain_formula(formula: str) -> str:
    """A formula of TeX in plain signs; what has none stays as it is. Rows of a matrix or of several lines end with a
    semicolon."""
    if not SPECIAL.search(formula):
        return " ".join(formula.split()).replace("`", "'")
    text = " ".join(FRAMES.sub(" ", formula).split())
    text = re.sub(r"\s*\\\\(?:\[[^\[\]]*\])?\s*", "; ", text)
    text = re.sub(r"(?<!; )(?:; )+\Z", "", text)  # Rows at the end that hold nothing.
    text = re.sub(r"\s*(?<!\\)&\s*", " ", text)
    for _ in range(DEEPEST):
        before = text
        for pattern, written in WITHIN:
            text = pattern.sub(written, text)
        if text == before:
            break
    text = re.sub(r"\\([A-Za-z]+)", _sign, text)
    text = re.sub(rf"\^(?:{GROUP}|(\w))", lambda found: _raised(found[1] or found[2] or "", ABOVE, "^"), text)
    text = re.sub(rf"_(?:{GROUP}|(\w))", lambda found: _raised(found[1] or found[2] or "", BELOW, "_"), text)
    text = re.sub(r"(?:\\[,;:! ]| )+", " ", text).strip()
    return re.sub(r"\\([{}&%$#_|])", r"\1", text).replace("`", "'")


def _sign(found: re.Match[str]) -> str:
    return found[1] if found[1] in NAMES else SIGNS.get(found[1], found[0])


def _doubled(letters: str) -> str:
    return "".join(DOUBLED.get(letter, letter) for letter in letters)


def _raised(text: str, signs: dict[str, str], mark: str) -> str:
    if all(sign in signs for sign in text):
        return "".join(signs[sign] for sign in text)
    return f"{mark}{text}" if len(text) == 1 else f"{mark}({text})"


WITHIN: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(rf"\\[dt]?frac{GROUP}{GROUP}"), r"(\1)/(\2)"),
    (re.compile(rf"\\[dt]?binom{GROUP}{GROUP}"), r"binom(\1, \2)"),
    (re.compile(rf"\\sqrt\[([^\[\]]+)\]{GROUP}"), r"root(\1, \2)"),
    (re.compile(rf"\\sqrt{GROUP}"), r"√(\1)"),
    (re.compile(rf"{WORDS}{GROUP}"), r"\1"),
    (re.compile(rf"\\(?:mathbb|mathds){GROUP}"), lambda found: _doubled(found[1])),
    (re.compile(rf"\\({'|'.join(ACCENTS)}){GROUP}"), lambda found: f"{found[2]}{ACCENTS[found[1]]}"),
)
"""What takes its words in braces, and how it is written without them."""
