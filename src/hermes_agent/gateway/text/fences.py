"""Code blocks of Markdown: where one begins and ends, and how they look where a platform knows only the plainest."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes_agent.core.dataclass import dataclass

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
    """The line that begins a code block: its indentation, its marks, and the words behind them."""

    indent: str
    marks: str
    words: str

    @property
    def language(self) -> str:
        """The first of the words: what the block is written in."""
        return self.words.split()[0] if self.words.strip() else ""

    @property
    def closing(self) -> str:
        """The line that ends the block."""
        return f"{self.indent}{self.marks}"

    @property
    def again(self) -> str:
        """The line that goes on with the block elsewhere."""
        return f"{self.closing}{self.words if len(self.words) <= LONGEST_WORDS else ''}"

    def ends(self, line: str) -> bool:
        """Whether that line of the block is its end: not what only looks like one."""
        found = OPENING.fullmatch(line.rstrip())
        return (
            found is not None
            and found["marks"].startswith(self.marks)
            and not found["words"]
            and len(found["indent"]) < len(self.indent) + DEEPER
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A code block: how it begins, its lines, and whether it ends."""

    fence: Fence
    lines: tuple[str, ...]
    ended: bool

    @property
    def bare(self) -> tuple[str, ...]:
        """The lines without the indentation that the whole block has."""
        indent = self.fence.indent
        return tuple(
            line.removeprefix(indent) if line.startswith(indent) else line.lstrip(" \t") for line in self.lines
        )

    @property
    def written(self) -> str:
        """The block as it was."""
        fence = self.fence
        return "\n".join((f"{fence.closing}{fence.words}", *self.lines, *((fence.closing,) if self.ended else ())))


def opening(line: str) -> Fence | None:
    """The beginning of a code block; None where the line is none."""
    found = OPENING.fullmatch(line)
    return found and Fence(indent=found["indent"], marks=found["marks"], words=found["words"].rstrip())


def read(text: str) -> Iterator[str | Block]:
    """The lines of a text, and the code blocks between them."""
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
    """The block that a text leaves open."""
    return next((piece.fence for piece in read(text) if isinstance(piece, Block) and not piece.ended), None)


def closed(text: str) -> str:
    """The text with an end to the block that it leaves open."""
    fence = open_at_end(text)
    return text if fence is None else f"{text.rstrip(chr(10))}\n{fence.closing}"


def plainest(text: str) -> str:
    """Blocks as every chat knows them: three backticks, not indented; the same within a block does not end it."""
    return "\n".join(_plainest(piece) if isinstance(piece, Block) else piece for piece in read(text))


def _plainest(block: Block) -> str:
    inside = (line.replace("```", HARMLESS) for line in block.bare)
    return "\n".join((f"```{block.fence.language}", *inside, *(("```",) if block.ended else ())))
