"""Converts fetched pages to Markdown: the main part of HTML (with selectolax), PDF, and plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from hermes_agent.core.errors import ToolError
from hermes_agent.host.late import late, libraries
from hermes_agent.host.process import WORK_SECONDS, Ended, apart
from hermes_agent.tools.files.documents import DOCUMENTS, Damaged
from hermes_agent.tools.web.pages import Page

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

# What is never words of the page, and what is around them.
DROPPED = "script, style, noscript, template, svg, iframe, form, button, select, dialog, [hidden], [aria-hidden=true]"
AROUND = "nav, footer, aside, [role=navigation], [role=banner], [role=contentinfo], [role=search]"
MAIN = ("main", "[role=main]", "article", "#content", "#main")
MAIN_SHARE = 0.3
"""Of the page's text, that one of `MAIN` must hold to be taken for the whole."""
DEEPEST = 200
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        "p div section article main header ul ol dl dt dd table figure figcaption blockquote address details summary",
    )
)
_EMPHASIS = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "kbd": "`", "samp": "`"}


def to_markdown(html: str, url: str) -> tuple[str, str]:
    """Title and main part of an HTML page as Markdown. Links are absolute; hidden content is dropped."""
    tree: LexborHTMLParser = libraries.lexbor.LexborHTMLParser(html)
    title = tree.css_first("title")
    heading = " ".join(title.text().split()) if title is not None else ""
    body = tree.body
    if body is None:
        return heading, ""
    for node in body.css(DROPPED):
        node.decompose()
    main = _main(body)
    for node in main.css(AROUND):
        node.decompose()
    text = _tidy("".join(_Writer(url).inside(main, 0)))
    return heading, text.replace(_KEPT_LINE, "\n").replace(_KEPT_SPACE, " ")


def _main(body: LexborNode) -> LexborNode:
    whole = len(body.text(strip=True))
    for selector in MAIN:
        found = body.css(selector)
        if len(found) == 1 and len(found[0].text(strip=True)) >= whole * MAIN_SHARE:
            return found[0]
    return body


class _Writer:
    """Converts the HTML nodes of one page to Markdown."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._special: dict[str, Callable[[LexborNode, int], str]] = {
            "a": self._link,
            "pre": self._code,
            "img": self._picture,
            "table": self._table,
            "ul": self._list,
            "ol": self._list,
            "blockquote": self._quote,
            "br": lambda _, __: "\n",
            "hr": lambda _, __: "\n\n---\n\n",
        }

    def inside(self, node: LexborNode, depth: int) -> Iterator[str]:
        """The content of a node."""
        for child in node.iter(include_text=True, skip_empty=False):
            yield self._written(child, depth + 1)

    def _written(self, node: LexborNode, depth: int) -> str:
        tag = node.tag or ""
        if tag == "-text":
            return re.sub(r"\s+", " ", node.text_content or "")
        if tag.startswith("-") or depth > DEEPEST:
            return ""
        if tag in self._special:
            return self._special[tag](node, depth)
        words = "".join(self.inside(node, depth))
        if tag in _HEADINGS:
            return f"\n\n{_HEADINGS[tag]} {_one_line(words)}\n\n" if words.strip() else ""
        if tag in _EMPHASIS and words.strip() and "\n" not in words.strip():
            mark = _EMPHASIS[tag]
            return words.replace(words.strip(), f"{mark}{words.strip()}{mark}", 1)
        return f"\n\n{words.strip()}\n\n" if tag in _BLOCKS else words

    def _link(self, node: LexborNode, depth: int) -> str:
        words = "".join(self.inside(node, depth))
        target = (node.attributes.get("href") or "").strip()
        if not words.strip() or not target or target.startswith(("#", "javascript:", "data:")):
            return words
        if "\n" in words.strip():
            return words
        return words.replace(words.strip(), f"[{words.strip()}]({_absolute(self._url, target)})", 1)

    def _picture(self, node: LexborNode, _: int) -> str:
        words, source = _one_line(node.attributes.get("alt") or ""), node.attributes.get("src") or ""
        if not words or not source or source.startswith("data:"):
            return ""
        return f"![{words}]({_absolute(self._url, source)})"

    def _code(self, node: LexborNode, _: int) -> str:
        text = node.text().strip("\n")
        fence = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
        kept = text.replace("\n", _KEPT_LINE).replace(" ", _KEPT_SPACE)
        return f"\n\n{fence}{_KEPT_LINE}{kept}{_KEPT_LINE}{fence}\n\n"

    def _list(self, node: LexborNode, depth: int) -> str:
        rows: list[str] = []
        for item in node.iter():
            words = _tidy("".join(self.inside(item, depth))) if item.tag == "li" else self._written(item, depth).strip()
            if not words:
                continue
            mark = f"{len(rows) + 1}. " if node.tag == "ol" else "- "
            rows.append(mark + words.replace("\n\n", "\n").replace("\n", f"\n{_KEPT_SPACE * len(mark)}"))
        return "\n\n" + "\n".join(rows) + "\n\n"

    def _quote(self, node: LexborNode, depth: int) -> str:
        words = _tidy("".join(self.inside(node, depth)))
        return "\n\n" + "\n".join(f"> {line}" for line in words.split("\n")) + "\n\n"

    def _table(self, node: LexborNode, depth: int) -> str:
        """A data table as rows with bars; a layout table as its cells in sequence."""
        if node.css_first("table table, table p, table ul, table div") is not None:
            return "".join(f"\n\n{''.join(self.inside(cell, depth))}\n\n" for cell in node.css("td, th"))
        rows = [
            [_one_line("".join(self.inside(cell, depth))).replace("|", "\\|") for cell in row.css("td, th")]
            for row in node.css("tr")
        ]
        rows = [row for row in rows if any(row)]
        if not rows:
            return ""
        lines = [f"| {' | '.join(row)} |" for row in rows]
        lines.insert(1, "|" + "---|" * len(rows[0]))
        return "\n\n" + "\n".join(lines) + "\n\n"


# Stand for what tidying leaves alone; a page cannot hold them, since Unicode gives them to nobody.
_KEPT_LINE, _KEPT_SPACE = "\ufdd0", "\ufdd1"


def _absolute(base: str, target: str) -> str:
    try:
        return urljoin(base, target).replace(" ", "%20")
    except ValueError:
        return target


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _tidy(text: str) -> str:
    """Strip lines, and keep at most one blank line in a row."""
    lines = "\n".join(line.strip(" \t") for line in re.sub(r"[ \t\xa0]+", " ", text).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", lines).strip("\n")


TOLD = "hermes_agent.tools.web.reading:parsed"
READ = b"+"
PDF = b"%PDF-"
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset=[\"']?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
SNIFFED = 4096


async def read_apart(page: Page, *, work: int = WORK_SECONDS) -> str:
    """Run `text_of` in a limited subprocess, as pages may be crafted to exhaust time or memory. Raises `ToolError`."""
    try:
        out = await apart(TOLD, page.body, page.url, page.media, page.charset, work=work)
    except (Ended, OSError) as error:
        raise ToolError(f"{page.url} cannot be read: {error}.") from error
    read, text = out[:1] == READ, out[1:].decode("utf-8", "surrogatepass")
    if not read:
        raise ToolError(text)
    return text


def parsed(body: bytes, url: str, media: str, charset: str) -> bytes:
    """Subprocess side of `read_apart`: the encoded text, or why it cannot be read."""
    try:
        return READ + text_of(Page(url=url, media=media, charset=charset, body=body)).encode("utf-8", "surrogatepass")
    except ToolError as error:
        return b"-" + str(error).encode("utf-8", "surrogatepass")


def text_of(page: Page) -> str:
    """The page's text with title and URL on top. Raises `ToolError` if it cannot be read."""
    if page.media == "application/pdf" or page.body.startswith(PDF):
        return _headed("", page.url, _pdf(page))
    text = decoded(page)
    if "html" in page.media:
        title, words = to_markdown(text, page.url)
        return _headed(title, page.url, words or "[the page has no text; it may need a browser]")
    return _headed("", page.url, text)


def decoded(page: Page) -> str:
    """Decode the body: by byte order mark, HTTP charset, the page's own, else UTF-8; invalid bytes are replaced."""
    mark = next((codec for start, codec in _MARKS if page.body.startswith(start)), "")
    named = _CHARSET.search(page.body[:SNIFFED])
    for codec in (mark, page.charset, named[1].decode() if named else "", "utf-8"):
        try:
            return page.body.decode(codec, "replace") if codec else page.body.decode()
        except (LookupError, UnicodeError):
            continue
    return page.body.decode("utf-8", "replace")


def _pdf(page: Page) -> str:
    try:
        lines: list[str] = late(DOCUMENTS[".pdf"])(page.body)
    except Damaged as error:
        raise ToolError(f"{page.url} is a PDF that cannot be read: {error}.") from error
    return "\n".join(lines)


def _headed(title: str, url: str, text: str) -> str:
    return "\n\n".join(filter(None, (f"# {title}" if title else "", f"<{url}>", text)))
