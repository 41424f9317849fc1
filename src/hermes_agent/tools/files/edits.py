"""Finds the text that a model means to replace: exactly, or by the mistakes that models make when they copy text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from hermes_agent.core.errors import ToolError

HINT_LINES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The new content, how many places changed, and how the old text was found (`exact` or what was overlooked)."""

    content: str
    count: int
    strategy: str


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    text: str


def replace(content: str, old: str, new: str, *, everywhere: bool) -> Replacement:
    """Put `new` in place of `old`, once, or at every place where `everywhere`.

    Tried in this order, the first that finds anything decides: exact; trailing spaces overlooked; indentation
    overlooked (the new text is indented as the found one); any run of spaces as one. Raises `ToolError` where the text
    is not found, stands at several places without `everywhere`, or would not change.
    """
    if not old:
        raise ToolError("old_string is empty.", hint="To make a file or replace it as a whole use write_file.")
    if old == new:
        raise ToolError("old_string and new_string are the same.")
    for strategy, find in _STRATEGIES:
        spans = list(find(content, old, new))
        if not spans:
            continue
        if len(spans) > 1 and not everywhere:
            lines = ", ".join(str(content.count("\n", 0, span.start) + 1) for span in spans[:5])
            more = "…" if len(spans) > 5 else ""
            raise ToolError(
                f"old_string stands at {len(spans)} places (lines {lines}{more}).",
                hint="Add lines around it until it is unique, or set replace_all.",
            )
        return Replacement(content=_applied(content, spans), count=len(spans), strategy=strategy)
    raise ToolError("old_string was not found in the file.", hint=_nearest(content, old))


def _applied(content: str, spans: list[_Span]) -> str:
    parts: list[str] = []
    position = 0
    for span in spans:
        parts += (content[position : span.start], span.text)
        position = span.end
    return "".join([*parts, content[position:]])


def _exact(content: str, old: str, new: str) -> Iterator[_Span]:
    position = content.find(old)
    while position >= 0:
        yield _Span(position, position + len(old), new)
        position = content.find(old, position + len(old))


def _by_lines(alike: Callable[[str], str], adapt: Callable[[str, str, str], str]) -> _Strategy:
    """A strategy that compares whole lines after `alike` has taken the differences away."""

    def find(content: str, old: str, new: str) -> Iterator[_Span]:
        rows = content.split("\n")
        wanted = [alike(line) for line in old.strip("\n").split("\n")]
        if not any(wanted):
            return
        have = [alike(row) for row in rows]
        starts = _starts(rows)
        index = 0
        while index + len(wanted) <= len(rows):
            if have[index] == wanted[0] and have[index : index + len(wanted)] == wanted:
                last = index + len(wanted) - 1
                found = "\n".join(rows[index : last + 1])
                end = starts[last] + len(rows[last])
                yield _Span(starts[index], end if new else min(end + 1, len(content)), adapt(found, old, new))
                index = last
            index += 1

    return find


def _starts(rows: list[str]) -> list[int]:
    starts, position = [], 0
    for row in rows:
        starts.append(position)
        position += len(row) + 1
    return starts


def _as_given(_found: str, _old: str, new: str) -> str:
    return new.strip("\n")


def _reindented(found: str, old: str, new: str) -> str:
    """The new text moved from the indentation that the model gave to that which the file has."""
    given, real = _indent(old.strip("\n")), _indent(found)
    rows = new.strip("\n").split("\n")
    if _differs_in_first_line_only(old.strip("\n"), found):
        return "\n".join([real + rows[0].removeprefix(given), *rows[1:]])
    return "\n".join(real + row.removeprefix(given) if row.strip() else row for row in rows)


def _differs_in_first_line_only(old: str, found: str) -> bool:
    """Models often leave out the indentation where they begin to copy."""
    given, real = old.split("\n")[1:], found.split("\n")[1:]
    return bool(given) and [row.rstrip() for row in given] == [row.rstrip() for row in real]


def _indent(text: str) -> str:
    first = next((row for row in text.split("\n") if row.strip()), "")
    return first[: len(first) - len(first.lstrip())]


def _nearest(content: str, old: str) -> str:
    first = next((row.strip() for row in old.split("\n") if row.strip()), "")
    rows = content.split("\n")[:20_000]
    near = get_close_matches(first, {row.strip() for row in rows if row.strip()}, HINT_LINES, 0.6)
    places = [f"line {number}: {row.strip()[:120]}" for number, row in enumerate(rows, 1) if row.strip() in near]
    return f"Similar: {'; '.join(places[:HINT_LINES])}" if places else "Read the file again and copy the text exactly."


_Strategy = Callable[[str, str, str], Iterator[_Span]]
_STRATEGIES: tuple[tuple[str, _Strategy], ...] = (
    ("exact", _exact),
    ("trailing spaces overlooked", _by_lines(str.rstrip, _as_given)),
    ("indentation overlooked", _by_lines(str.strip, _reindented)),
    ("spaces overlooked", _by_lines(lambda row: " ".join(row.split()), _reindented)),
)
