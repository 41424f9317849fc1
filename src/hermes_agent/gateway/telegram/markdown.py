"""Markdown as Telegram's MarkdownV2, in which every sign that is not meant must be escaped."""

from __future__ import annotations

import re

from hermes_agent.gateway.text.fences import Block, read

RESERVED = re.compile(r"([_*\[\]()~`>#+\-=|{}.!\\])")
IN_CODE = re.compile(r"([`\\])")
IN_LINK = re.compile(r"([)\\])")
INLINE = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|\[(?P<words>[^\[\]\n]+)\]\((?P<address>[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)\)"
    r"|\*\*(?P<bold>\S(?:.*?\S)?)\*\*|__(?P<heavy>\S(?:.*?\S)?)__"
    r"|~~(?P<gone>\S(?:.*?\S)?)~~"
    r"|(?<![\w*])\*(?P<star>[^\s*](?:[^*\n]*[^\s*])?)\*(?![\w*])"
    r"|(?<![\w_])_(?P<line>[^\s_](?:[^_\n]*[^\s_])?)_(?![\w_])"
)
NAME = re.compile(r"(?<![\w@.])@(?=\w)")
MARKS = {
    "bold": ("bold", "*"),
    "heavy": ("bold", "*"),
    "gone": ("gone", "~"),
    "star": ("line", "_"),
    "line": ("line", "_"),
}
UNMEANT, WIDE_SIGN = "@\N{WORD JOINER}", "\N{FULLWIDTH COMMERCIAL AT}"
LONGEST = 4096


def formatted(text: str) -> str:
    """The text for `parse_mode=MarkdownV2`: names of people do not become mentions."""
    marked = "\n".join(_block(piece) if isinstance(piece, Block) else _line(piece) for piece in read(text))
    return marked if _has_room(text) else marked.replace(UNMEANT, WIDE_SIGN)


def escaped(text: str) -> str:
    """Words without any meaning to Telegram."""
    return RESERVED.sub(r"\\\1", NAME.sub(UNMEANT, text))


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
    if found := re.match(r"^(#{1,6})\s+(.+?)\s*#*$", line):
        return f"*{_inline(found[2], frozenset({'bold'}))}*"
    if found := re.match(r"^>\s?(.*)$", line):
        return f">{_inline(found[1])}"
    if found := re.match(r"^(\s*)[-*+]\s+(.*)$", line):
        return f"{found[1]}• {_inline(found[2])}"
    return _inline(line)


def _inline(text: str, within: frozenset[str] = frozenset()) -> str:
    done: list[str] = []
    at = 0
    for found in INLINE.finditer(text):
        done += [escaped(text[at : found.start()]), _piece(found, within)]
        at = found.end()
    return "".join([*done, escaped(text[at:])])


def _piece(found: re.Match[str], within: frozenset[str]) -> str:
    if code := found["code"]:
        return f"`{IN_CODE.sub(chr(92) * 2 + chr(92) + '1', code)}`"
    if words := found["words"]:
        inside = _inline(words, within | {"link"})
        return inside if "link" in within or not found["address"] else f"[{inside}]({_address(found['address'])})"
    name = str(found.lastgroup)
    kind, mark = MARKS[name]
    inside = _inline(found[name], within | {kind})
    return inside if kind in within else f"{mark}{inside}{mark}"


def _address(address: str) -> str:
    return IN_LINK.sub(r"\\\1", address)
