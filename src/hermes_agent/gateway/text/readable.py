"""What chat platforms cannot show, made readable: tables as aligned text, formulas in plain signs."""

from __future__ import annotations

import re
import unicodedata

from hermes_agent.gateway.text.fences import read

ROW = re.compile(r"^\s*\|(.+)\|\s*$")
RULE = re.compile(r"^\s*\|(?:\s*:?-+:?\s*\|)+\s*$")
DISPLAY = re.compile(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]", re.DOTALL)
INLINE = re.compile(r"\\\((.+?)\\\)|(?<![\w$\\])\$(?=[^\s$])([^$\n]*?[\\^_{][^$\n]*?)(?<=[^\s$\\])\$(?![\w$])")
CODE = re.compile(r"(`+)(?:(?!\1).)+?\1")
WIDEST = 60
"""Columns of an aligned table that a phone still shows; a wider one becomes a list."""
SIGNS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "theta": "θ",
    "lambda": "λ",
    "mu": "μ",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "chi": "χ",
    "psi": "ψ",
    "omega": "ω",
    "Gamma": "Γ",
    "Delta": "Δ",
    "Theta": "Θ",
    "Lambda": "Λ",
    "Sigma": "Σ",
    "Phi": "Φ",
    "Omega": "Ω",
    "times": "×",
    "cdot": "·",
    "div": "÷",
    "pm": "±",
    "leq": "≤",
    "le": "≤",
    "geq": "≥",
    "ge": "≥",
    "neq": "≠",
    "ne": "≠",
    "approx": "≈",
    "infty": "∞",
    "sum": "∑",
    "prod": "∏",
    "int": "∫",
    "partial": "∂",
    "nabla": "∇",
    "to": "→",
    "rightarrow": "→",
    "Rightarrow": "⇒",
    "leftarrow": "←",
    "in": "∈",
    "notin": "∉",
    "subset": "⊂",
    "cup": "∪",
    "cap": "∩",
    "forall": "∀",
    "exists": "∃",
    "ldots": "…",
    "dots": "…",
    "cdots": "⋯",
    "quad": "  ",
    "left": "",
    "right": "",
}  # fmt: skip - one sign a line would fill the file
ABOVE = dict(zip("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ", strict=True))
BELOW = dict(zip("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎", strict=True))
GROUP = r"\{((?:[^{}]|\{[^{}]*\})*)\}"


def readable(text: str) -> str:
    """Markdown without tables and formulas; code is left as it is."""
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
    if not lines:
        return []
    done: list[str] = []
    at = 0
    while at < len(lines):
        if at + 1 < len(lines) and ROW.match(lines[at]) and RULE.match(lines[at + 1]):
            end = at + 2
            while end < len(lines) and ROW.match(lines[end]):
                end += 1
            done += _table([_cells(lines[at]), *(_cells(line) for line in lines[at + 2 : end])])
            at = end
        else:
            done.append(lines[at])
            at += 1
    return _formulas("\n".join(done)).split("\n")


def _cells(line: str) -> list[str]:
    found = ROW.match(line)
    inside = found[1] if found else line
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inside)]


def _table(rows: list[list[str]]) -> list[str]:
    columns = max(len(row) for row in rows)
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
    """A cell without the marks that a code block would show."""
    return re.sub(r"\*\*|`|__", "", re.sub(r"\[([^\]]*)\]\(([^)]*)\)", r"\1 (\2)", cell))


def width(text: str) -> int:
    """Columns that a text takes in a fixed-width font."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _formulas(text: str) -> str:
    if "$" not in text and "\\" not in text:
        return text
    kept: list[str] = []

    def hide(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    text = CODE.sub(hide, text)
    text = DISPLAY.sub(lambda found: f"`{plain_formula(found[1] or found[2])}`", text)
    text = INLINE.sub(lambda found: f"`{plain_formula(found[1] or found[2])}`", text)
    return re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], text)


def plain_formula(formula: str) -> str:
    """A formula of TeX in plain signs; what has none stays as it is."""
    text = " ".join(formula.split())
    for _ in range(4):  # Fractions and roots within each other.
        text = re.sub(rf"\\[dt]?frac{GROUP}{GROUP}", r"(\1)/(\2)", text)
        text = re.sub(rf"\\sqrt{GROUP}", r"√(\1)", text)
        text = re.sub(rf"\\(?:text|mathrm|mathbf|mathit|operatorname){GROUP}", r"\1", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda found: SIGNS.get(found[1], found[0]), text)
    text = re.sub(rf"\^(?:{GROUP}|(\w))", lambda found: _raised(found[1] or found[2] or "", ABOVE, "^"), text)
    text = re.sub(rf"_(?:{GROUP}|(\w))", lambda found: _raised(found[1] or found[2] or "", BELOW, "_"), text)
    return re.sub(r"(?:\\[,;:! ]| )+", " ", text).replace("\\{", "{").replace("\\}", "}").replace("`", "'")


def _raised(text: str, signs: dict[str, str], mark: str) -> str:
    if all(sign in signs for sign in text):
        return "".join(signs[sign] for sign in text)
    return f"{mark}{text}" if len(text) == 1 else f"{mark}({text})"
