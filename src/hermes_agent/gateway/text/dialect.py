"""Markdown written in a platform's own markup, by a record of what that looks like."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.text.fences import TICKS, Block, heading, read, respanned

INLINE = re.compile(
    r"(?P<ticks>(?<!`)`+)"
    r"|\[(?P<words>[^\[\]\n]+)\]\((?P<address>[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)\)"
    r"|(?P<bold>\*\*)(?=\S)|(?P<heavy>__)(?=\S)|(?P<gone>~~)(?=\S)"
    r"|(?<![\w*])\*(?P<star>[^\s*](?:[^*\n]*[^\s*])?)\*(?![\w*])"
    r"|(?<![\w_])_(?P<line>[^\s_](?:[^_\n]*[^\s_])?)_(?![\w_])"
)
ENDS = {
    "bold": re.compile(r"(?<=\S)\*\*"),
    "heavy": re.compile(r"(?<=\S)__"),
    "gone": re.compile(r"(?<=\S)~~"),
}
QUOTE = re.compile(r">\s?(.*)")
ITEM = re.compile(r"(\s*)[-*+]\s+(.*)")
MARKS = {
    "bold": ("bold", "*"),
    "heavy": ("bold", "*"),
    "gone": ("gone", "~"),
    "star": ("line", "_"),
    "line": ("line", "_"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """`escape` writes words without any meaning, `code` those within code, `link` shown words and their address, which
    is not empty. `quote` begins a quoted line; `languages`: a code block says what it is written in."""

    escape: Callable[[str], str]
    code: Callable[[str], str]
    link: Callable[[str, str], str]
    quote: str = "> "
    languages: bool = False


def rendered(text: str, dialect: Dialect) -> str:
    """The text in a dialect."""
    return "\n".join(
        _block(piece, dialect) if isinstance(piece, Block) else _line(piece, dialect) for piece in read(text)
    )


def _block(block: Block, dialect: Dialect) -> str:
    language = re.sub(r"[^\w+#.-]", "", block.fence.language) if dialect.languages else ""
    return "\n".join((f"```{language}", *(map(dialect.code, block.bare)), "```"))


def _line(line: str, dialect: Dialect) -> str:
    if words := heading(line):
        return f"*{_inline(words, dialect, frozenset({'bold'}))}*"
    if found := QUOTE.fullmatch(line):
        return f"{dialect.quote}{_inline(found[1], dialect)}"
    if found := ITEM.fullmatch(line):
        return f"{found[1]}• {_inline(found[2], dialect)}"
    return _inline(line, dialect)


def _inline(text: str, dialect: Dialect, within: frozenset[str] = frozenset()) -> str:
    return respanned(text, INLINE, ENDS, partial(_piece, dialect, within), dialect.escape)


def _piece(dialect: Dialect, within: frozenset[str], kind: str, found: re.Match[str], inside: str) -> str:
    if kind == TICKS:
        return f"`{dialect.code(inside)}`"
    if words := found["words"]:
        shown, address = _inline(words, dialect, within | {"link"}), found["address"]
        return shown if "link" in within or not address else dialect.link(shown, address)
    look, mark = MARKS[kind]
    shown = _inline(inside or found[kind], dialect, within | {look})
    return shown if look in within else f"{mark}{shown}{mark}"
