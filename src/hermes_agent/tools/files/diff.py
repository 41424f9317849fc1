"""The difference between two versions of a file, in time and size that do not depend on the file."""

from __future__ import annotations

from difflib import unified_diff

CONTEXT = 3
MOST_COMPARED = 2000  # difflib takes the square of what differs
MOST_SHOWN = 200


def unified(before: str, after: str, name: str) -> str:
    """A unified diff of at most 200 lines; a change of thousands of lines is only counted. Empty where equal."""
    old, new = before.split("\n"), after.split("\n")
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    start, old_end, new_end = max(0, head - CONTEXT), len(old) - tail, len(new) - tail
    removed, added = old[start : old_end + CONTEXT], new[start : new_end + CONTEXT]
    if old_end - head + new_end - head > MOST_COMPARED:
        return f"[{old_end - head:,} lines became {new_end - head:,}, from line {head + 1}]"
    rows = [
        _moved(row, start) for row in unified_diff(removed, added, f"a/{name}", f"b/{name}", lineterm="", n=CONTEXT)
    ]
    if len(rows) > MOST_SHOWN:
        rows = [*rows[:MOST_SHOWN], f"[{len(rows) - MOST_SHOWN} more lines of diff]"]
    return "\n".join(rows)


def _common(old: list[str], new: list[str]) -> int:
    count = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        count += 1
    return count


def _moved(row: str, by: int) -> str:
    """A hunk's header counts from where the compared part begins; move it to the file's own lines."""
    if not row.startswith("@@ -"):
        return row
    old, new = row[4:-3].split(" +")
    return f"@@ -{_shifted(old, by)} +{_shifted(new, by)} @@"


def _shifted(span: str, by: int) -> str:
    first, comma, count = span.partition(",")
    return f"{int(first) + by}{comma}{count}"
