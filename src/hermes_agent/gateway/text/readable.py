"""Converts Markdown that chats cannot show: tables to aligned text or lists, TeX formulas to Unicode."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from hermes_agent.gateway.text.markdown import read, respanned

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
    """A TeX formula in Unicode; unknown commands stay as they are. Rows of a matrix or of several lines end with a
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


DASHES = re.compile(r":?-+:?")
CODE = re.compile(r"(?P<ticks>(?<!`)`+)")
DISPLAY = re.compile(
    r"(?P<twice>\$\$)|(?P<square>\\\[)|(?P<frame>\\begin\{(?:equation|align|gather|multline|eqnarray)\*?\})"
)
INLINE = re.compile(
    r"(?P<round>\\\()"
    r"|(?P<once>(?<![\w$\\])\$(?=[^\s$])(?=[^$\n]*[\\^_{])(?=[^$\n]+(?<=[^\s$\\])\$(?![\w$])))"
)
ENDS = {
    "twice": re.compile(r"\$\$"),
    "square": re.compile(r"\\\]"),
    "frame": re.compile(r"\\end\{\w+\*?\}"),
    "round": re.compile(r"\\\)"),
    "once": re.compile(r"\$"),
}
LINK = re.compile(r"\[([^\[\]]*)\]\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
WIDEST = 60
"""Columns of an aligned table that a phone still shows; a wider one becomes a list."""

MOST_COLUMNS = 100
"""Lines between the columns of what is still a table."""


def readable(text: str) -> str:
    """Markdown with tables and formulas converted; code is unchanged."""
    lines: list[str] = []
    prose: list[str] = []
    for piece in read(text):
        if isinstance(piece, str):
            prose.append(piece)
        else:
            lines += [*_prose(prose), piece.written]
            prose = []
    return "\n".join([*lines, *_prose(prose)])


def _prose(lines: list[str]) -> list[str]:
    done: list[str] = []
    plain: list[str] = []
    at = 0
    while at < len(lines):
        end = _end_of_table(lines, at)
        if end == at:
            plain.append(lines[at])
            at += 1
        else:
            rows = [_cells(line) for line in (lines[at], *lines[at + 2 : end])]
            done += [*_without_formulas(plain), *_table(rows)]
            plain, at = [], end
    return [*done, *_without_formulas(plain)]


def _end_of_table(lines: list[str], at: int) -> int:
    """The line after the table that begins here; `at` if none does."""
    if at + 1 >= len(lines) or not (0 < lines[at].count("|") <= MOST_COLUMNS and _is_rule(lines[at + 1])):
        return at
    return next((end for end in range(at + 2, len(lines)) if "|" not in lines[end]), len(lines))


def _is_rule(line: str) -> bool:
    return "|" in line and all(DASHES.fullmatch(cell.strip()) for cell in _inside(line).split("|"))


def _inside(line: str) -> str:
    """A row without its outer bars."""
    return line.strip().removeprefix("|").removesuffix("|")


def _without_formulas(lines: list[str]) -> list[str]:
    return _formulas("\n".join(lines)).split("\n") if lines else []


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", _inside(line))]


def _table(rows: list[list[str]]) -> list[str]:
    columns = len(rows[0])
    rows = [row if len(row) <= columns else [*row[: columns - 1], " | ".join(row[columns - 1 :])] for row in rows]
    rows = [[*map(_bare, row), *[""] * (columns - len(row))] for row in rows]
    widths = [max(width(row[column]) for row in rows) for column in range(columns)]
    if sum(widths) + 2 * (columns - 1) > WIDEST:
        return _list(rows)
    drawn = ["  ".join(cell + " " * (widths[n] - width(cell)) for n, cell in enumerate(row)).rstrip() for row in rows]
    return ["```", drawn[0], "  ".join("─" * each for each in widths), *drawn[1:], "```"]


def _list(rows: list[list[str]]) -> list[str]:
    head, *body = rows
    lines = []
    for row in body:
        lines.append(f"• **{row[0] or '-'}**")
        lines += [f"  {name}: {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if cell]
    return lines or [" · ".join(head)]


def _bare(cell: str) -> str:
    """A cell without inline marks, which a code block would show."""
    return re.sub(r"\*\*|`|__", "", LINK.sub(r"\1 (\2)", _formulas(cell)))


def width(text: str) -> int:
    """Display width of a text in fixed-width columns."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _formulas(text: str) -> str:
    if "$" not in text and "\\" not in text:
        return text
    kept: list[str] = []

    def hide(_: str, found: re.Match[str], inside: str) -> str:
        kept.append(f"{found[0]}{inside}{found[0]}")
        return f"\0{len(kept) - 1}\0"

    lines = text.replace("\0", "").split("\n")
    text = "\n".join(respanned(line, CODE, ENDS, hide) for line in lines)
    text = respanned(text, DISPLAY, ENDS, _plain)
    text = "\n".join(respanned(line, INLINE, ENDS, _plain) for line in text.split("\n"))
    return re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], text)


def _plain(_: str, __: re.Match[str], formula: str) -> str:
    return f"`{plain_formula(formula)}`"
