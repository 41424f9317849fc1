"""Search and replace for file edits: finds the old text exactly, or despite the usual copying mistakes of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import SequenceMatcher, get_close_matches

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError

# One character for one, so that a position in the plainer text is the same position in the text.
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u200a\u202f\u3000", " "),
    }
)


def plainer(text: str) -> str:
    """The text with plain quotes, dashes and spaces; of the same length."""
    return text if text.isascii() else text.translate(_PLAIN)


HINT_LINES = 3
# A block found by its first and last line: how many lines it has at least, how many more or fewer than the text given,
# and how much its middle is like that of the text (difflib's ratio).
LEAST_ANCHORED, ANCHOR_SLACK, LIKENESS = 3, 3, 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Result of a replacement: the new content, the number of places, and which strategy found the text (`exact` or
    a looser one)."""

    content: str
    count: int
    strategy: str


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    text: str


def replace(content: str, old: str, new: str, *, everywhere: bool) -> Replacement:
    """Replaces `old` by `new`, once, or at every place where `everywhere`.

    Strategies in order, the first that finds anything decides: exact; ignoring trailing spaces; ignoring
    indentation (the new text is re-indented); any run of spaces as one; typographic quotes, dashes and spaces as
    plain ones; the first and last line of at least three, with a similar middle. Raises `ToolError` where the
    text is not found, is ambiguous without `everywhere`, or would not change.
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


def _as_plain(content: str, old: str, new: str) -> Iterator[_Span]:
    yield from _exact(plainer(content), plainer(old), new)


def _by_anchors(content: str, old: str, new: str) -> Iterator[_Span]:
    """Blocks that begin and end as the old text does and are much like it in between."""
    rows, wanted = content.split("\n"), [_bare(row) for row in old.strip("\n").split("\n")]
    if len(wanted) < LEAST_ANCHORED or not wanted[0] or not wanted[-1]:
        return
    bare, starts, index = [_bare(row) for row in rows], _starts(rows), 0
    while index < len(rows):
        last = _end_of_block(bare, wanted, index) if bare[index] == wanted[0] else -1
        if last > 0:
            found = content[starts[index] : starts[last] + len(rows[last])]
            yield _Span(starts[index], starts[last] + len(rows[last]), _reindented(found, old, new))
            index = last
        index += 1


def _end_of_block(bare: list[str], wanted: list[str], first: int) -> int:
    """Where the block that is most like the wanted one ends; -1 where none is enough like it."""
    size, best, found = len(wanted), LIKENESS, -1
    for last in range(first + max(2, size - ANCHOR_SLACK) - 1, min(len(bare), first + size + ANCHOR_SLACK)):
        if bare[last] != wanted[-1]:
            continue
        like = SequenceMatcher(None, "\n".join(wanted[1:-1]), "\n".join(bare[first + 1 : last])).ratio()
        if like >= best:
            best, found = like, last
    return found


def _bare(row: str) -> str:
    return " ".join(plainer(row).split())


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
    ("quotes and dashes overlooked", _as_plain),
    ("quotes, dashes and indentation overlooked", _by_lines(_bare, _reindented)),
    ("found by its first and last line", _by_anchors),
)
