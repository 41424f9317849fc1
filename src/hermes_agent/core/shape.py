"""Fingerprint of a request for the usage ledger: tells how much of it a provider's prompt cache could reuse, and
what broke the cache."""

from __future__ import annotations

import json

from hermes_agent.core.dataclass import dataclass

MOST_MARKS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Fingerprint of one request. `effort` and `use_tools` are as requested; `marks` are pairs of a message count
    and the hash of that many first messages, the last pair covering all of them."""

    effort: str = ""
    use_tools: bool = True
    marks: tuple[tuple[int, str], ...] = ()

    @property
    def text(self) -> str:
        """The fingerprint as the ledger stores it."""
        return json.dumps([self.effort, int(self.use_tools), *self.marks], separators=(",", ":"))


def read_shape(text: str) -> Shape | None:
    """Parses the fingerprint of a ledger row; None where there is none."""
    if not text:
        return None
    effort, use_tools, *marks = json.loads(text)
    return Shape(effort=effort, use_tools=bool(use_tools), marks=tuple((count, each) for count, each in marks))


def marks_of(hashes: list[str]) -> tuple[tuple[int, str], ...]:
    """At most 16 marks of a conversation whose first `n` messages have the hash `hashes[n - 1]`: at multiples of a
    power of two, so that most marks of a longer conversation are among them, and at its end."""
    step = 1
    while len(hashes) // step >= MOST_MARKS:
        step *= 2
    marks = [(count, hashes[count - 1]) for count in range(step, len(hashes) + 1, step)]
    if hashes and (not marks or marks[-1][0] != len(hashes)):
        marks.append((len(hashes), hashes[-1]))
    return tuple(marks)


def first_change(before: Shape, after: Shape) -> str:
    """The first difference between two consecutive requests, in words; empty where the later one only appends."""
    now = dict(after.marks)
    same = 0
    for count, mark in before.marks:
        if count not in now:
            continue
        if now[count] != mark:
            return f"messages {same + 1} to {count}" if count - same > 1 else f"message {count}"
        same = count
    end = before.marks[-1][0] if before.marks else 0
    if after.marks and after.marks[-1][0] < end:
        return f"messages after {after.marks[-1][0]} taken away"
    if before.effort != after.effort:
        return f"reasoning level ({before.effort} to {after.effort})"
    if before.use_tools != after.use_tools:
        return "whether tools may be used"
    return ""
