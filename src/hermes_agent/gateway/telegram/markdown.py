"""Markdown as Telegram's MarkdownV2, in which every sign that is not meant must be escaped."""

from __future__ import annotations

import re

from hermes_agent.gateway.text.fences import TICKS, Block, heading, read, respanned

RESERVED = str.maketrans({sign: f"\\{sign}" for sign in "_*[]()~`>#+-=|{}.!\\"})
IN_CODE = re.compile(r"([`\\])")
IN_LINK = re.compile(r"([)\\])")
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
NAME = re.compile(r"(?<![\w@.])@(?=\w)")
MARKS = {
    "bold": ("bold", "*"),
    "heavy": ("bold", "*"),
    "gone": ("gone", "~"),
    "star": ("line", "_"),
    "line": ("line", "_"),
}
OWN_SCHEME = "tg:"
"""Links of Telegram's own mention people by their ids, and press what a person would have to."""
UNMEANT, WIDE_SIGN = "@\N{WORD JOINER}", "\N{FULLWIDTH COMMERCIAL AT}"
LONGEST = 4096


def formatted(text: str) -> str:
    """The text for `parse_mode=MarkdownV2`: names of people do not become mentions."""
    marked = "\n".join(_block(piece) if isinstance(piece, Block) else _line(piece) for piece in read(text))
    return marked if _has_room(text) else marked.replace(UNMEANT, WIDE_SIGN)


def escaped(text: str) -> str:
    """Words without any meaning to Telegram."""
    return NAME.sub(UNMEANT, text).translate(RESERVED)


def unmeant(text: str) -> str:
    """The text as it is, but that names of people do not become mentions."""
    return NAME.sub(UNMEANT if _has_room(text) else WIDE_SIGN, text)


def _has_room(text: str) -> bool:
    """Whether a message still holds it with a sign more at each name."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 + text.count("@") <= LONGEST


def _block(block: Block) -> str:
    inside = IN_CODE.sub(r"\\\1", "\n".join(block.bare))
    language = re.sub(r"[^\w+#.-]", "", block.fence.language)
    return f"```{language}\n{inside}\n```"


def _line(line: str) -> str:
    if not line:
        return ""
    if words := heading(line):
        return f"*{_inline(words, frozenset({'bold'}))}*"
    if found := QUOTE.fullmatch(line):
        return f">{_inline(found[1])}"
    if found := ITEM.fullmatch(line):
        return f"{found[1]}• {_inline(found[2])}"
    return _inline(line)


def _inline(text: str, within: frozenset[str] = frozenset()) -> str:
    def written(kind: str, found: re.Match[str], inside: str) -> str:
        return _piece(kind, found, inside, within)

    return respanned(text, INLINE, ENDS, written, escaped)


def _piece(kind: str, found: re.Match[str], inside: str, within: frozenset[str]) -> str:
    if kind == TICKS:
        return f"`{IN_CODE.sub(chr(92) * 2 + chr(92) + '1', inside)}`"
    if words := found["words"]:
        shown, address = _inline(words, within | {"link"}), found["address"]
        if "link" in within or not address:
            return shown
        if address.lower().startswith(OWN_SCHEME):
            return f"{shown} \\({escaped(address)}\\)"
        return f"[{shown}]({_address(address)})"
    look, mark = MARKS[kind]
    shown = _inline(inside or found[kind], within | {look})
    return shown if look in within else f"{mark}{shown}{mark}"


def _address(address: str) -> str:
    return IN_LINK.sub(r"\\\1", address)
