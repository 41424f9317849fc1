"""Taking a change of a file back, and putting one on top of another."""

from __future__ import annotations

from difflib import SequenceMatcher

from hermes_agent.core.errors import HermesError

AROUND = 2
"""Lines around a change by which it is found again."""


class Conflict(HermesError):
    """A change does not fit what the file is now."""


def rebased(current: bytes | None, base: bytes | None, target: bytes | None) -> bytes | None:
    """What `current` becomes by the change that made `target` of `base`; to the byte `target` where nothing else
    changed. Raises `Conflict`."""
    if current == base:
        return target
    if current is None or base is None or target is None:
        raise Conflict("The file was made or removed since.")
    try:
        text, old, new = (each.decode() for each in (current, base, target))
    except UnicodeDecodeError as error:
        raise Conflict("The file is not text, and another one now.") from error
    for before, after in _blocks(old.splitlines(keepends=True), new.splitlines(keepends=True)):
        if text.count(before) != 1:
            raise Conflict("The same lines were changed since.")
        text = text.replace(before, after)
    return text.encode()


def merged(base: bytes | None, ours: bytes | None, theirs: bytes | None) -> bytes | None:
    """What two homes made of one file; where both changed the same lines, what a person wrote here stands."""
    try:
        return rebased(theirs, base, ours)
    except Conflict:
        return ours


def _blocks(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    """Each change with a few lines around it, as it was and as it is."""
    found = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            above, below = old[max(0, i1 - AROUND) : i1], old[i2 : i2 + AROUND]
            found.append(("".join([*above, *old[i1:i2], *below]), "".join([*above, *new[j1:j2], *below])))
    return found
