"""What a fetched page says, as Markdown: HTML, PDF, and text as it stands."""

from __future__ import annotations

import re

from hermes_agent.core.errors import ToolError
from hermes_agent.host.late import late
from hermes_agent.host.process import WORK_SECONDS, Ended, apart
from hermes_agent.tools.files.documents import DOCUMENTS
from hermes_agent.tools.files.documents.damaged import Damaged
from hermes_agent.tools.web.pages import Page

TOLD = "hermes_agent.tools.web.reading:parsed"
READ = b"+"
TO_MARKDOWN = "hermes_agent.tools.web.markdown:to_markdown"
PDF = b"%PDF-"
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset=[\"']?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
SNIFFED = 4096


async def read_apart(page: Page, *, work: int = WORK_SECONDS) -> str:
    """What `text_of` gives, in a process of its own: pages can be made to take all time or memory. Raises
    `ToolError`."""
    try:
        out = await apart(TOLD, page.body, page.url, page.media, page.charset, work=work)
    except (Ended, OSError) as error:
        raise ToolError(f"{page.url} cannot be read: {error}.") from error
    read, text = out[:1] == READ, out[1:].decode("utf-8", "surrogatepass")
    if not read:
        raise ToolError(text)
    return text


def parsed(body: bytes, url: str, media: str, charset: str) -> bytes:
    """The page as the other process tells it, or why it cannot be read."""
    try:
        return READ + text_of(Page(url=url, media=media, charset=charset, body=body)).encode("utf-8", "surrogatepass")
    except ToolError as error:
        return b"-" + str(error).encode("utf-8", "surrogatepass")


def text_of(page: Page) -> str:
    """The page with its title and address on top. Raises `ToolError` where it cannot be read."""
    if page.media == "application/pdf" or page.body.startswith(PDF):
        return _headed("", page.url, _pdf(page))
    text = decoded(page)
    if "html" in page.media:
        title, words = late(TO_MARKDOWN)(text, page.url)
        return _headed(title, page.url, words or "[the page has no text; it may need a browser]")
    return _headed("", page.url, text)


def decoded(page: Page) -> str:
    """The body as text: by its byte order mark, the charset that the site tells, the one that the page names, else
    UTF-8; what does not fit is shown as replacement characters."""
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
