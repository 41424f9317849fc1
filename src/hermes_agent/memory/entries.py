"""Parses a notes file into entries and applies the operations of the memory tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from hermes_agent.core.errors import ToolError
from hermes_agent.scanner.scan import alarms

SEPARATOR = "§"
"""The line that stands between two entries."""

BETWEEN = f"\n{SEPARATOR}\n"

Action = Literal["add", "replace", "remove"]


class Operation(msgspec.Struct, frozen=True):
    """A change to the notes: add content, replace the entry that contains old_text, or remove it."""

    action: Action
    content: str = ""
    old_text: str = ""


def decoded(content: bytes | None) -> str:
    """Decodes a notes file in UTF-8 or UTF-16."""
    if content is None:
        return ""
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return content.decode(encoding, "replace")


def entries_of(text: str) -> list[str]:
    """The entries of a file in order, without empty ones."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip() == SEPARATOR:
            found.append([])
        else:
            found[-1].append(line.rstrip())
    return [entry for lines in found if (entry := "\n".join(lines).strip())]


def joined(entries: Sequence[str]) -> str:
    """The text of a file with these entries; empty for none."""
    return BETWEEN.join(entries) + "\n" if entries else ""


def merged(base: bytes | None, ours: bytes | None, theirs: bytes | None) -> bytes | None:
    """Merges the notes of two homes: theirs, without the entries we removed and with those we added."""
    old, mine, other = (entries_of(decoded(each)) for each in (base, ours, theirs))
    stays = [entry for entry in other if entry in mine or entry not in old]
    added = [entry for entry in mine if entry not in old and entry not in stays]
    return joined([*stays, *added]).encode("utf-8", "replace")


def size_of(entries: Sequence[str]) -> int:
    """Characters that count against the limit: the entries with their separators."""
    return len(joined(entries).rstrip("\n"))


def applied(entries: Sequence[str], operations: Sequence[Operation], limit: int) -> list[str]:
    """Apply all operations atomically; the new entries. Raises `ToolError`.

    Entries over the limit may still be shortened.
    """
    found = list(entries)
    for operation in operations:
        _apply(found, operation)
    size = size_of(found)
    if size > limit and size >= size_of(entries):
        raise ToolError(
            f"That would be {size:,} characters, and {limit:,} is the limit: nothing was written. Remove what is "
            "stale or put entries together, in the same call."
        )
    return found


def _apply(entries: list[str], operation: Operation) -> None:
    match operation.action:
        case "add":
            entries.append(_new(operation.content, entries))
        case "replace":
            place = _place(operation.old_text, entries)
            entries[place] = _new(operation.content, [*entries[:place], *entries[place + 1 :]])
        case "remove":
            del entries[_place(operation.old_text, entries)]


def _new(content: str, others: Sequence[str]) -> str:
    found = entries_of(content)
    if any(line.strip() == SEPARATOR for line in content.splitlines()):
        raise ToolError(f"An entry cannot hold a line `{SEPARATOR}`: that is what stands between two. Add them singly.")
    if not found:
        raise ToolError("`content` is empty; to drop an entry, use action `remove`.")
    if found[0] in others:
        raise ToolError("This entry is in the notes already: nothing was written.")
    check(found[0])
    return found[0]


def check(entry: str) -> None:
    """Raise `ToolError` for an entry that must not enter every later prompt."""
    if grave := alarms(entry):
        reasons = ", ".join(dict.fromkeys(f"{each.category.value}: {each.what}" for each in grave))
        raise ToolError(
            f"Not noted, the text looks unsafe ({reasons}).",
            hint="Note facts in plain words; no instructions to a model, no secrets.",
        )


def _place(old_text: str, entries: Sequence[str]) -> int:
    wanted = old_text.strip()
    if not wanted:
        raise ToolError("`old_text` is empty: give a piece of the entry that no other one has.")
    places = [place for place, entry in enumerate(entries) if wanted in entry]
    exact = [place for place in places if entries[place] == wanted]
    if len(exact or places) == 1:
        return (exact or places)[0]
    many = "several entries hold it; give more of the one that you mean" if places else "no entry holds it"
    raise ToolError(f"`{wanted[:80]}`: {many}. Nothing was written.")
