"""Splits Markdown into messages of limited length without breaking code blocks, links or characters."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

from hermes_agent.gateway.channel import Unit
from hermes_agent.gateway.text.markdown import BEGINNING, LONGEST_MARKS, Block, open_at_end, read
from hermes_agent.host.late import libraries

Size = Callable[[str], int]

MARKS = re.compile(rf"^{BEGINNING}", re.MULTILINE)
# What must not be cut: links, addresses, code within a line, and emphasis.
WHOLE = re.compile(r"!?\[[^\[\]\n]*\]\([^)\s]{0,1000}\)|https?://\S+|``?[^`\n]+``?|\*\*[^*\n]+\*\*|__[^_\n]+__")
LONGEST_WHOLE = 2000
LONGEST_CHARACTER = 64
"""Code points of one visible character that are kept together; more than that is somebody's joke."""


def size_in(unit: Unit) -> Size:
    """Length function for a platform's unit."""
    match unit:
        case Unit.UTF16:
            return lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2
        case Unit.BYTES:
            return lambda text: len(text.encode("utf-8", "surrogatepass"))
        case Unit.CHARACTERS:
            return len


def cut(text: str, longest: int, size: Size = len) -> list[str]:
    """Split the text into pieces of at most `longest`; none if it is blank.

    A code block across a cut is closed and reopened with the same info string. Pieces end at a paragraph, line or
    word if that leaves them at least half full.
    """
    pieces, rest = [], text.strip("\n")
    while rest.strip():
        if len(rest) <= longest and size(rest) <= longest:  # No unit counts less than one for a sign.
            pieces.append(rest)
            break
        head, rest = _split(rest, longest, size)
        pieces += [head] if head else []
    return pieces


def _split(text: str, longest: int, size: Size) -> tuple[str, str]:
    marks = max((len(found[0]) + 1 for found in MARKS.finditer(text, 0, longest)), default=0)
    end = _fitting(text, max(1, longest - marks), size)
    at = _best(text, end)
    if at > end and text[end] == " " and open_at_end(text[:at]):
        at = _best(text, max(1, end - 1))  # A space of code is not left out at a cut.
    head, rest = text[:at].rstrip("\n"), text[at:]
    fence = open_at_end(head)
    if fence is None:
        return head.rstrip(), rest.lstrip("\n").lstrip(" ")
    line, _, behind = rest.removeprefix("\n").partition("\n")
    if fence.ends(line):
        return f"{head}\n{fence.closing}", behind
    again = f"{fence.again}\n{rest.removeprefix(chr(10))}"
    # Words behind the marks that fill a whole piece are not said again in each.
    return (f"{head}\n{fence.closing}", again) if len(again) < len(text) else (head, rest)


def _fitting(text: str, room: int, size: Size) -> int:
    """Number of characters that fit."""
    low, high = 1, min(len(text), room)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(text[:middle]) <= room else (low, middle - 1)
    return low


def _best(text: str, end: int) -> int:
    """The best cut at or before `end`."""
    spans = [found.span() for found in WHOLE.finditer(text, 0, min(end * 2, end + LONGEST_WHOLE))]
    return _between(text, end, end // 2, spans) or _between(text, end, 0, spans) or _whole_character(text, end)


def _between(text: str, end: int, least: int, spans: list[tuple[int, int]]) -> int:
    """The best cut after `least`; 0 if there is none."""
    for sign in ("\n\n", "\n", " "):
        at = end + 1 if text[end : end + len(sign)] == sign else text.rfind(sign, least, end) + 1
        while at > least:
            if _may_cut(text, at, spans):
                return at
            at = text.rfind(sign, least, at - 1) + 1
    at = end
    while at > least and not _may_cut(text, at, spans):
        at -= 1
    return at if at > least else 0


def _may_cut(text: str, at: int, spans: list[tuple[int, int]]) -> bool:
    before = bisect_left(spans, (at,)) - 1  # They follow each other.
    inside = before >= 0 and at < spans[before][1]
    return not inside and _whole_character(text, at) == at and not _just_opened(text, at)


def _just_opened(text: str, at: int) -> bool:
    """Whether a cut here would leave an empty code block or split a fence."""
    begins = text.rfind("\n", max(0, at - LONGEST_MARKS), max(0, at - 1)) + 1
    if begins == 0 and at > LONGEST_MARKS:
        if text[at - 1] != "\n":
            return False
        begins = text.rfind("\n", 0, at - 1) + 1
    marks = text[begins:at].strip()
    if marks and at < len(text) and marks == len(marks) * text[at] and text[at] in "`~":
        return True
    return marks[:3] in ("```", "~~~") and _is_empty(text[:at])


def _is_empty(text: str) -> bool:
    """Whether a text ends with the opening of a code block."""
    *_, last = read(text.rstrip("\n"))
    return isinstance(last, Block) and not last.ended and not last.lines


def _whole_character(text: str, at: int) -> int:
    """The last grapheme boundary at or before `at`."""
    if not 0 < at < len(text):
        return at
    begins = max(0, at - LONGEST_CHARACTER)
    start: int = libraries.wcwidth.grapheme_boundary_before(text[begins : at + 1], at + 1 - begins)
    return begins + start if start else at
