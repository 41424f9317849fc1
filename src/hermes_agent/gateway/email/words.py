"""Text extraction from mail: visible text of HTML, and removal of quoted text and signatures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.late import libraries

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

LONGEST_LINE = 100
"""Characters of a line that programs of mail write around words of theirs."""
HEADER = re.compile(r"\*?[^\W\d_][^\n:]{0,20}:\*? .{1,300}")
"""A line of the head that programs put above a mail which is quoted or forwarded, in any language."""
HEADERS = 3
LARGEST_HTML = 500_000
"""Characters of a mail that are read; what follows is not. (Gmail shows 102,000.)"""
SILENT = frozenset(["script", "style", "head", "title", "noscript", "template", "svg", "iframe", "object", "select"])
BLOCKS = re.compile(r"p|div|tr|table|ul|ol|blockquote|pre|section|article|header|footer|hr|dl|dd|dt|form|h[1-6]")
QUOTED = "blockquote[type=cite], .gmail_quote, .yahoo_quoted, .moz-cite-prefix, #divRplyFwdMsg, #appendonsend"
BREAK = "\x1e"
WHITE = (255, 255, 255)
NAMES = {
    "white": WHITE,
    "black": (0, 0, 0),
    "snow": (255, 250, 250),
    "ivory": (255, 255, 240),
    "whitesmoke": (245,) * 3,
}
NEAR = 24
"""How much two colours differ, in the sum of their parts, that nobody can tell apart."""
AWAY = re.compile(r"^-\d{3,}")
LENGTH = re.compile(r"^([\d.]+)(px|pt|em|rem|%|)$")
SMALLEST = {"px": 2.0, "pt": 2.0, "em": 0.15, "rem": 0.15, "%": 15.0, "": 2.0}
BRACE = re.compile(r"[{}]")
WATCHED = re.compile(r"display|visibility|opacity|font|color|background|height|indent|mso-hide|left|top|clip")

Colour = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Style:
    """Whether a reader sees an HTML element's text: hidden, tiny, or in the colour of its background."""

    gone: bool = False
    unseen: bool = False
    tiny: bool = False
    ink: Colour = (0, 0, 0)
    ground: Colour = WHITE

    @property
    def shown(self) -> bool:
        near = sum(abs(one - other) for one, other in zip(self.ink, self.ground, strict=False)) <= NEAR
        return not (self.gone or self.unseen or self.tiny or near)


def visible_text(html: str, *, quotes: bool = True) -> str:
    """The visible text of HTML, in lines. Without `quotes`, quoted earlier mails are removed."""
    tree: LexborHTMLParser = libraries.lexbor.LexborHTMLParser(html[:LARGEST_HTML])
    if tree.body is None:
        return ""
    if not quotes:
        for quote in tree.css(QUOTED):
            _without_what_follows(quote) if quote.attributes.get("id") else quote.decompose()
    sheet = _sheet(tree)
    pieces: list[str] = []
    stack: list[tuple[LexborNode | str, Style]] = [(tree.body, Style())]
    while stack:
        node, look = stack.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif node.is_text_node:
            pieces.append(_text(node) if look.shown else "")
        elif node.is_element_node and node.tag not in SILENT:
            _open(node, _looks(node, look, sheet), pieces, stack)
    return _lines("".join(pieces))


def _open(node: LexborNode, look: Style, pieces: list[str], stack: list[tuple[LexborNode | str, Style]]) -> None:
    """Push the element's children on the stack, with the separators around them."""
    if look.gone:
        return
    tag = node.tag or ""
    match tag:
        case "br":
            pieces.append(BREAK)
        case "li":
            pieces.append(f"{BREAK}- ")
        case "td" | "th":
            pieces.append(" ")
        case "img" if look.shown and (alt := node.attributes.get("alt")):
            pieces.append(f"[{alt}]")
    if BLOCKS.fullmatch(tag):
        pieces.append(BREAK)
        stack.append((BREAK, look))
    if tag == "a" and look.shown and _leads_elsewhere(node):
        stack.append((f" ({node.attributes['href']})", look))
    stack += [(child, look) for child in reversed(list(node.iter(include_text=True)))]


def _leads_elsewhere(node: LexborNode) -> bool:
    href = node.attributes.get("href") or ""
    return href.startswith(("http://", "https://")) and href.rstrip("/") not in node.text(deep=True)


def _text(node: LexborNode) -> str:
    text = node.text(deep=False)
    parent = node.parent
    return text.replace("\n", BREAK) if parent is not None and parent.tag == "pre" else text


def _lines(text: str) -> str:
    lines = [" ".join(line.split()) for line in text.split(BREAK)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _looks(node: LexborNode, look: Style, sheet: Mapping[int, str]) -> Style:
    attributes = node.attributes
    style = f"{sheet.get(node.mem_id, '')};{attributes.get('style') or ''}"
    if "bgcolor" in attributes:
        style = f"background:{attributes['bgcolor']};{style}"
    if node.tag == "font" and "color" in attributes:
        style = f"color:{attributes['color']};{style}"
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return replace(look, gone=True)
    return _styled(_declared(style), look) if style != ";" else look


def _declared(style: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in style.lower().split(";"):
        name, _, value = each.partition(":")
        found[name.strip()] = value.replace("!important", "").strip()
    return found


def _styled(style: Mapping[str, str], look: Style) -> Style:
    gone = (
        style.get("display") == "none"
        or style.get("mso-hide") == "all"
        or _is_zero(style.get("opacity", ""))
        or any(AWAY.match(style.get(name, "")) for name in ("text-indent", "left", "top", "margin-left"))
        or (style.get("overflow") == "hidden" and any(_is_zero(style.get(n, "")) for n in ("max-height", "height")))
        or style.get("clip", "").startswith("rect(0")
    )
    unseen = style["visibility"] in ("hidden", "collapse") if "visibility" in style else look.unseen
    size = LENGTH.match(style.get("font-size", ""))
    tiny = float(size[1] or 0) < SMALLEST[size[2]] if size and size[1].count(".") < 2 else look.tiny
    ground = _colour(style.get("background-color") or style.get("background", "")) or look.ground
    ink = ground if style.get("color") == "transparent" else _colour(style.get("color", "")) or look.ink
    return Style(look.gone or gone, unseen, tiny, ink, ground)


def _is_zero(value: str) -> bool:
    digits = re.match(r"^(\d*\.?\d+)", value)
    return digits is not None and float(digits[1]) < 0.05


def _colour(value: str) -> Colour | None:
    """Parse a CSS colour into red, green and blue; None if it is something else."""
    value = value.strip()
    if found := re.match(r"#([0-9a-f]{6}|[0-9a-f]{3})\b", value):
        digits = found[1] if len(found[1]) == 6 else "".join(each * 2 for each in found[1])
        return tuple(int(digits[at : at + 2], 16) for at in (0, 2, 4))
    if found := re.match(r"rgba?\(\s*(\d+)[\s,]+(\d+)[\s,]+(\d+)", value):
        return tuple(int(each) for each in found.groups())
    return NAMES.get(value.split(" ")[0])


def _sheet(tree: LexborHTMLParser) -> dict[int, str]:
    """The declarations of the mail's own style sheets, by element."""
    styles: dict[int, str] = {}
    text = "\n".join(node.text(deep=True) for node in tree.css("style"))
    for selector, declared in _rules(text):
        if ":" not in selector and WATCHED.search(declared):
            for node in _selected(tree, selector):
                styles[node.mem_id] = f"{styles.get(node.mem_id, '')};{declared}"
    return styles


def _rules(text: str) -> Iterator[tuple[str, str]]:
    """Selector and declarations of each rule; nested ones (`@media`) are skipped."""
    beginning, *comments = text.split("/*")
    text = beginning + "".join(each.partition("*/")[2] for each in comments)
    depth = at = 0
    selector = ""
    for brace in BRACE.finditer(text):
        before, at = text[at : brace.start()], brace.end()
        if brace[0] == "{":
            depth += 1
            if depth == 1:
                selector = before.rpartition(";")[2].strip()
        elif depth:
            depth -= 1
            if not depth and not selector.startswith("@"):
                yield selector, before


def _selected(tree: LexborHTMLParser, selector: str) -> list[LexborNode]:
    try:
        return list(tree.css(selector))
    except libraries.lexbor.SelectolaxError:  # It is no selector.
        return []


def _without_what_follows(node: LexborNode) -> None:
    """Remove everything after the node: Outlook marks the start of quoted mails instead of wrapping them."""
    after = node.next
    while after is not None:
        following = after.next
        after.decompose()
        after = following
    node.decompose()


def without_quotes(text: str) -> str:
    """Plain text without trailing quotes, their attribution line, and the signature."""
    lines = text.split("\n")
    if "-- " in lines:
        lines = lines[: lines.index("-- ")]
    end = len(lines)
    while end and (not lines[end - 1].strip() or lines[end - 1].startswith(">")):
        end -= 1
    quoted = any(line.startswith(">") for line in lines[end:])
    if quoted and end and lines[end - 1].rstrip().endswith(":"):
        end -= 1
        if end and lines[end - 1].startswith("On "):  # The line of the author was wrapped.
            end -= 1
    return "\n".join(lines[:end]).strip()


def own_words(text: str) -> str:
    """Text without quoted lines (`>`) and without a forwarded mail at its end."""
    lines = text.split("\n")
    end = next((number for number in range(len(lines)) if _is_head(lines[number : number + HEADERS])), len(lines))
    own = text if end == len(lines) else without_quotes("\n".join(lines[:end]))
    return "\n".join(line for line in own.split("\n") if not line.startswith(">")).strip()


def _is_head(lines: list[str]) -> bool:
    """Whether a forwarded or quoted mail begins here: a dashed separator line, or header lines with an address."""
    first = lines[0].strip()
    if first[:3] == first[-3:] == "---" and len(first) < LONGEST_LINE and first.strip("- "):
        return True
    return len(lines) == HEADERS and all(map(HEADER.fullmatch, lines)) and any("@" in line for line in lines)


def is_signature(text: str) -> bool:
    """Whether the rest of a mail is only its signature."""
    return text.startswith("-- \n") and own_words(text) == text
