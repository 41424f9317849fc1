"""Markdown parsing and rendering: finds code blocks, and converts text to a platform's dialect or HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.late import libraries

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LONGEST_MARKS = 40
"""Marks, and columns of indentation, of a code block; with more than that it is only a line of signs."""
BEGINNING = (
    rf"(?P<indent>[ \t]{{0,{LONGEST_MARKS}}})"
    rf"(?P<marks>`{{3,{LONGEST_MARKS}}}(?!`)|~{{3,{LONGEST_MARKS}}}(?!~))"
)
OPENING = re.compile(rf"{BEGINNING}(?P<words>[^\n`]*)")
DEEPER = 4
"""Columns by which what looks like an end is indented more than the beginning, so that it is none (CommonMark 4.5)."""
HARMLESS = "`\N{ZERO WIDTH SPACE}``"
LONGEST_WORDS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Opening line of a fenced code block: indentation, backticks or tildes, and info string."""

    indent: str
    marks: str
    words: str

    @property
    def language(self) -> str:
        """The block's language."""
        return self.words.split()[0] if self.words.strip() else ""

    @property
    def closing(self) -> str:
        """The closing line."""
        return f"{self.indent}{self.marks}"

    @property
    def again(self) -> str:
        """The line that reopens the block in the next piece."""
        return f"{self.closing}{self.words if len(self.words) <= LONGEST_WORDS else ''}"

    def ends(self, line: str) -> bool:
        """Whether that line closes the block."""
        found = OPENING.fullmatch(line.rstrip())
        return (
            found is not None
            and found["marks"].startswith(self.marks)
            and not found["words"]
            and len(found["indent"]) < len(self.indent) + DEEPER
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced code block; `ended`: whether it is closed."""

    fence: Fence
    lines: tuple[str, ...]
    ended: bool

    @property
    def bare(self) -> tuple[str, ...]:
        """The lines without the block's indentation."""
        indent = self.fence.indent
        return tuple(
            line.removeprefix(indent) if line.startswith(indent) else line.lstrip(" \t") for line in self.lines
        )

    @property
    def written(self) -> str:
        """The block's source text."""
        fence = self.fence
        return "\n".join((f"{fence.closing}{fence.words}", *self.lines, *((fence.closing,) if self.ended else ())))


def opening(line: str) -> Fence | None:
    """Parse the opening line of a code block; None if it is none."""
    found = OPENING.fullmatch(line)
    return found and Fence(indent=found["indent"], marks=found["marks"], words=found["words"].rstrip())


def read(text: str) -> Iterator[str | Block]:
    """Split a text into lines and code blocks."""
    fence: Fence | None = None
    inside: list[str] = []
    for line in text.split("\n"):
        if fence is None:
            fence = opening(line)
            if fence is None:
                yield line
        elif fence.ends(line):
            yield Block(fence=fence, lines=tuple(inside), ended=True)
            fence, inside = None, []
        else:
            inside.append(line)
    if fence is not None:
        yield Block(fence=fence, lines=tuple(inside), ended=False)


def open_at_end(text: str) -> Fence | None:
    """The code block that a text leaves open; None if none."""
    return next((piece.fence for piece in read(text) if isinstance(piece, Block) and not piece.ended), None)


def closed(text: str) -> str:
    """The text with an open code block closed."""
    fence = open_at_end(text)
    return text if fence is None else f"{text.rstrip(chr(10))}\n{fence.closing}"


def plainest(text: str) -> str:
    """Normalize code blocks to three backticks without indentation; backticks inside are defused."""
    return "\n".join(_plainest(piece) if isinstance(piece, Block) else piece for piece in read(text))


def _plainest(block: Block) -> str:
    inside = (line.replace("```", HARMLESS) for line in block.bare)
    return "\n".join((f"```{block.fence.language}", *inside, *(("```",) if block.ended else ())))


TICKS = "ticks"
"""The kind of mark that only as many of it end as began it."""

RUN = re.compile(r"`+")
HEADING = re.compile(r"#{1,6}\s+(\S.*)")


def heading(line: str) -> str:
    """The text of a heading line; empty if it is none."""
    found = HEADING.fullmatch(line.rstrip())
    return (found[1].rstrip("#").rstrip() or found[1]) if found else ""


def respanned(
    text: str,
    opening: re.Pattern[str],
    ends: Mapping[str, re.Pattern[str]],
    write: Callable[[str, re.Match[str], str], str],
    between: Callable[[str], str] = str,
) -> str:
    """Rewrite each inline span with `write`, which gets its kind, opening match and content.

    `opening` finds spans; the name of its last group is their kind. `ends` gives each kind's closing pattern, at
    least one character later; a kind without one is complete at its opening. `between` rewrites all other text.
    """
    done: list[str] = []
    at = look = 0
    missing: set[str] = set()  # What has no end from here on has none later either.
    last = {run[0]: run.start() for run in RUN.finditer(text)}
    while found := opening.search(text, look):
        kind, stop, inside = str(found.lastgroup), found.end(), ""
        if kind == TICKS or kind in ends:
            key = found[0] if kind == TICKS else kind
            end = (
                None
                if key in missing or (kind == TICKS and last[key] == found.start())
                else _end(text, key, stop + 1, ends)
            )
            if end is None:
                missing.add(key)
                look = stop if kind == TICKS else found.start() + 1
                continue
            inside, stop = text[stop : end[0]], end[1]
        done += [between(text[at : found.start()]), write(kind, found, inside)]
        at = look = stop
    return "".join([*done, between(text[at:])])


def _end(text: str, key: str, at: int, ends: Mapping[str, re.Pattern[str]]) -> tuple[int, int] | None:
    if key in ends:
        found = ends[key].search(text, at)
        return found and found.span()
    return next((run.span() for run in RUN.finditer(text, at) if run[0] == key), None)


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
    """Rules for writing a platform's markup. `escape` escapes text, `code` text within code, `link` renders a link with
    a non-empty address. `quote` begins a quoted line; `languages`: code blocks name their language."""

    escape: Callable[[str], str]
    code: Callable[[str], str]
    link: Callable[[str, str], str]
    quote: str = "> "
    languages: bool = False


def rendered(text: str, dialect: Dialect) -> str:
    """Render Markdown in a dialect."""
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


def html(text: str) -> str:
    """Render Markdown as HTML. Tags are shown as text; remote pictures become links, so that opening a mail is not
    tracked."""
    parser: MarkdownIt = libraries.markdown_it.MarkdownIt("commonmark", {"html": False, "breaks": True})
    rendered: str = parser.enable(["table", "strikethrough"]).disable("image").render(text)
    return rendered
