"""Taking one change of a skill back, and putting a change on top of another one."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from pathlib import Path

from hermes_agent.core.errors import HermesError
from hermes_agent.host.files import read_small
from hermes_agent.skills.versions import LARGEST, SkillVersions
from hermes_agent.store.versions import Version

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
        raise Conflict("The file is no text, and another one now.") from error
    for before, after in _blocks(old.splitlines(keepends=True), new.splitlines(keepends=True)):
        if text.count(before) != 1:
            raise Conflict("The same lines were changed since.")
        text = text.replace(before, after)
    return text.encode()


async def before(versions: SkillVersions, version: Version, folder: Path) -> Mapping[str, bytes | None]:
    """Each file that the act of this version changed, as it is without that act. Raises `Conflict`."""
    name = version.change.item.partition("/")[0]
    act = [each for each in await versions.history(name) if each.id == version.id or _is_same_act(each, version)]
    files: dict[str, bytes | None] = {}
    for each in act:
        file = each.change.item.removeprefix(f"{name}/")
        current = read_small(folder / file, LARGEST * 4)
        files[file] = rebased(current, each.change.after, each.change.before)
    return files


def _is_same_act(one: Version, other: Version) -> bool:
    return bool(one.change.change) and one.change.change == other.change.change


def _blocks(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    """Each change with a few lines around it, as it was and as it is."""
    found = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            above, below = old[max(0, i1 - AROUND) : i1], old[i2 : i2 + AROUND]
            found.append(("".join([*above, *old[i1:i2], *below]), "".join([*above, *new[j1:j2], *below])))
    return found
