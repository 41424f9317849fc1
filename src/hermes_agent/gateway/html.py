"""Markdown as HTML, for platforms that show HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.host.late import late

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


def html(text: str) -> str:
    """Markdown as HTML. Tags in it are shown as text; pictures of other servers become links, so that reading tells
    nobody that it was read."""
    parser: MarkdownIt = late("markdown_it:MarkdownIt")("commonmark", {"html": False, "breaks": True})
    rendered: str = parser.enable(["table", "strikethrough"]).disable("image").render(text)
    return rendered
