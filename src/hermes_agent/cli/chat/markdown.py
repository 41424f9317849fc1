"""Renders a Markdown block for the terminal with rich; imported when the first text arrives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import (
    CodeBlock,
    Heading,
    HorizontalRule,
    ListItem,
    Markdown,
    MarkdownContext,
    MarkdownElement,
    Paragraph,
    TableElement,
)
from rich.rule import Rule
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from hermes_agent.cli.chat.blocks import FENCE, closes, fence_of, is_code
from hermes_agent.cli.chat.text import clean

# The terminal's own palette without its bright colours and yellow, so that it is readable on light and dark ones.
CODE_COLOURS = {
    "Comment": "dim",
    "Keyword Operator.Word Name.Decorator Name.Tag": "magenta",
    "Keyword.Type Name.Builtin Literal.Number Generic.Subheading": "cyan",
    "Name.Function Name.Class Generic.Heading": "bold",
    "Literal.String Generic.Inserted": "green",
    "Generic.Deleted": "red",
}
CODE_THEME = ANSISyntaxTheme(
    {tuple(kind.split(".")): Style.parse(style) for kinds, style in CODE_COLOURS.items() for kind in kinds.split()}
)
PARSER = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
BOX = re.compile(r"\[([ xX])\] ")
BOXES = {" ": "☐ ", "x": "☑ "}
ADDRESS = re.compile(r"https?://[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]]")
# Blanks up to the right edge: of no use, and where a width was misjudged they would break the line.
PADDING = re.compile(r"(?:\x1b\[[0-9;]*m *(?:\x1b\[0?m)|\s)+$")
THEME = Theme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold",
        "markdown.h5": "bold",
        "markdown.h6": "bold",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.block_quote": "italic",
        "markdown.item.bullet": "none",
        "markdown.item.number": "none",
        "markdown.link": "none",
        "markdown.link_url": "underline",
        "markdown.table.header": "bold",
        "markdown.table.border": "dim",
        "markdown.hr": "dim",
    }
)


class LeftHeading(Heading):
    """Renders headings left-aligned."""

    LEVEL_ALIGN: ClassVar = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class BareCode(CodeBlock):
    """Renders code inside a list or quote without background."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        syntax = Syntax(code, self.lexer_name, theme=CODE_THEME, background_color="default", word_wrap=True)
        yield syntax


class DottedItem(ListItem):
    """Renders numbered list items as `1. one`, and those of a task list with their box in the place of the bullet."""

    bullet = "•"

    def on_child_close(self, context: MarkdownContext, child: MarkdownElement) -> bool:
        if isinstance(child, Paragraph) and child.text.plain.startswith(tuple(BOXES.values())):
            self.bullet, child.text = child.text.plain[0], child.text[2:]
        return super().on_child_close(context, child)

    def render_bullet(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for place, segment in enumerate(super().render_bullet(console, options)):
            yield Segment(f" {self.bullet} ") if place == 0 else segment

    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        numeral = f"{number}. ".rjust(len(str(last_number - 1)) + 3)
        lines = console.render_lines(self.elements, options.update(width=options.max_width - len(numeral)))
        for position, line in enumerate(lines):
            yield Segment(" " * len(numeral) if position else numeral)
            yield from line
            yield Segment.line()


class PlainTable(TableElement):
    """Renders tables with only a line under their header; cells wrap, also within a long word."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                table.box = box.SIMPLE_HEAD
                table.show_edge = False
                table.pad_edge = False
                for column in table.columns:
                    column.overflow = "fold"
            yield table


class Line(HorizontalRule):
    """Renders a rule as the line under a table's header."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style="markdown.hr", characters="─")


EMPTY = Markdown("", hyperlinks=True)


class ChatMarkdown(Markdown):
    """Renders Markdown as models write it: line breaks are kept, and `Vec<T>` is text, not HTML."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": LeftHeading,
        "fence": BareCode,
        "code_block": BareCode,
        "list_item_open": DottedItem,
        "table_open": PlainTable,
        "hr": Line,
    }

    def __init__(self, markup: str) -> None:
        vars(self).update(vars(EMPTY))  # The library makes a parser for each, which takes longer than the rest.
        self.markup = markup
        self.parsed = PARSER.parse(markup)
        _tick(self.parsed)
        for token in self.parsed:
            if token.children:
                token.children = list(_inline(token.children))


def _tick(tokens: list[Token]) -> None:
    """Give task list items a box instead of their brackets."""
    for opening, paragraph, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_item = opening.type == "list_item_open" and paragraph.type == "paragraph_open" and inline.children
        if is_item and (found := BOX.match(inline.content)) and inline.children:
            first = inline.children[0]
            first.content = BOXES[found[1].lower()] + first.content[found.end() :]


def _inline(tokens: list[Token]) -> Iterator[Token]:
    """The parts of a line: its line ends kept, its links and pictures with their addresses behind them, and bare
    addresses as links."""
    address, shown = "", ""
    for token in tokens:
        match token.type:
            case "softbreak":
                yield Token("hardbreak", "br", 0)
            case "link_open":
                address, shown = str(token.attrGet("href") or ""), ""
                yield token
            case "link_close":
                if address not in (shown, f"mailto:{shown}"):
                    yield _text(f" ({address})")
                address = ""
                yield token
            case "image":
                yield from _link(str(token.attrGet("src") or ""), f"[picture: {token.content or 'without words'}]")
            case "text" if not address:
                yield from _with_links(token.content)
            case _:
                shown += token.content
                yield token


def _with_links(text: str) -> Iterator[Token]:
    at = 0
    for found in ADDRESS.finditer(text):
        yield _text(text[at : found.start()])
        yield from _link(found[0])
        at = found.end()
    yield _text(text[at:])


def _link(address: str, words: str = "") -> Iterator[Token]:
    yield Token("link_open", "a", 1, attrs={"href": address})
    yield _text(f"{words} ({address})" if words else address)
    yield Token("link_close", "a", -1)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def render(block: str, width: int) -> str:
    """Render a block as coloured lines of at most `width` cells, without surrounding blank lines.

    Top-level code keeps its own lines, however long: the terminal wraps them, and they can be copied.
    """
    out = StringIO()
    console = Console(
        file=out,
        width=max(8, width),
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
        theme=THEME,
        _environ={},
    )  # fmt: skip - one setting a line would hide the call
    text = clean(block).strip("\n")
    if is_code(text):
        console.print(_code(text), soft_wrap=True, end="")
    else:
        console.print(ChatMarkdown(text), end="")
    return "\n".join(PADDING.sub("", line) for line in out.getvalue().strip("\n").split("\n"))


def _code(block: str) -> Text:
    """The content of a fenced block with syntax colours."""
    head, *lines = block.split("\n")
    fence = fence_of(head, FENCE)
    if lines and closes(lines[-1], fence):
        lines.pop()
    language = head.strip()[len(fence) :].strip().partition(" ")[0]
    syntax = Syntax("", language or "text", theme=CODE_THEME, background_color="default")
    code = syntax.highlight("\n".join(lines))
    code.rstrip()
    return code
