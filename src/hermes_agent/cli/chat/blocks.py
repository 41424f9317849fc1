"""Splits streamed Markdown into blocks (paragraphs, lists, code) that are complete and can be rendered for good."""

from __future__ import annotations

import re
from enum import Enum, auto

FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
FENCE_IN_LIST = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])\s+)*(`{3,}(?=[^`]*$)|~{3,})")
ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
ITEM_AFTER_WORDS = re.compile(r" {0,3}(?:[-*+]|1[.)])\s+\S")
HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")


class Kind(Enum):
    """Kind of the Markdown block that is being read."""

    NOTHING = auto()
    WORDS = auto()
    LIST = auto()
    CODE = auto()


class Blocks:
    """Incremental splitter of Markdown: takes text in pieces, and returns each block once nothing that follows can
    change its rendering.

    The blocks and then `tail`, joined, equal the input. A block is a paragraph, heading, whole list, fenced code block
    or table, with the blank lines around it.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest = ""
        self._kind = Kind.NOTHING
        self._fence = ""
        self._gap = False
        self._done: list[str] = []

    @property
    def tail(self) -> str:
        """The text of the unfinished block."""
        return "".join(self._lines) + self._rest

    def feed(self, text: str) -> list[str]:
        """Add a piece of text. Returns the blocks it completes."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._take(f"{line}\n")
        done, self._done = self._done, []
        return done

    def close(self) -> list[str]:
        """End of the text: return the remaining blocks."""
        if self._rest:
            self._take(self._rest)
        left = [*self._done, "".join(self._lines)]
        self._lines, self._done, self._rest, self._fence, self._gap = [], [], "", "", False
        self._kind = Kind.NOTHING
        return [block for block in left if block]

    def _take(self, line: str) -> None:
        if self._fence:
            self._lines.append(line)
            if closes(line, self._fence):
                self._fence = ""
                if self._kind is Kind.CODE:
                    self._begin(Kind.NOTHING)
        elif not line.strip():
            self._lines.append(line)
            self._gap = True
            if self._kind is Kind.WORDS:
                self._begin(Kind.NOTHING)
        else:
            self._take_words(line)
            self._gap = False

    def _take_words(self, line: str) -> None:
        """Process a non-blank line outside of code."""
        if self._kind is Kind.LIST and self._goes_on(line):
            self._lines.append(line)
            self._fence = fence_of(line, FENCE_IN_LIST)
            return
        kind = self._kind_of(line)
        if kind is not self._kind or kind is not Kind.WORDS:
            self._begin(kind)
        self._lines.append(line)
        if kind is Kind.CODE:
            self._fence = fence_of(line, FENCE)
        elif kind is Kind.LIST:
            self._fence = fence_of(line, FENCE_IN_LIST)
        elif HEADING.match(line):
            self._begin(Kind.NOTHING)

    def _goes_on(self, line: str) -> bool:
        """Whether a line continues the current list."""
        if ITEM.match(line) or line[0] in " \t":
            return True
        return not (self._gap or FENCE.match(line) or HEADING.match(line))

    def _kind_of(self, line: str) -> Kind:
        if FENCE.match(line):
            return Kind.CODE
        starts_list = ITEM_AFTER_WORDS if self._kind is Kind.WORDS else ITEM
        if starts_list.match(line):
            return Kind.LIST
        if HEADING.match(line) and self._kind is Kind.WORDS:
            self._begin(Kind.NOTHING)
        return Kind.WORDS

    def _begin(self, kind: Kind) -> None:
        """Finish the current block, unless it is blank, and start another."""
        if any(line.strip() for line in self._lines):
            self._done.append("".join(self._lines))
            self._lines = []
        self._kind = kind


def is_code(block: str) -> bool:
    """Whether a block is fenced code."""
    return FENCE.match(block.lstrip("\n").partition("\n")[0]) is not None


def fence_of(line: str, opening: re.Pattern[str]) -> str:
    """The fence (backticks or tildes) that a line opens; empty if none."""
    found = opening.match(line.rstrip("\n"))
    return found.group(1) if found else ""


def closes(line: str, fence: str) -> bool:
    """Whether a line closes the code block opened by `fence`."""
    mark = line.strip()
    return len(mark) >= len(fence) and set(mark) == {fence[0]}
