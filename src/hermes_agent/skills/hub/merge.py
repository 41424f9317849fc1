"""Three versions of a skill become one: what only one side changed is taken, what both changed is merged by lines."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.process import run
from hermes_agent.skills.depot.files import Files, text_or_none
from hermes_agent.skills.format import BadSkill, read
from hermes_agent.skills.hub.errors import HubError
from hermes_agent.skills.hub.git import found_git
from hermes_agent.skills.skill import FILE

SECONDS = 20.0
FAILED = 128  # from here on an exit code of merge-file is no number of conflicts


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A file that both sides changed in one place; `text` shows both, or says what happened."""

    file: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What changes about the person's copy (None: the file goes), and where a person has to choose."""

    changes: dict[str, bytes | None]
    conflicts: tuple[Conflict, ...]


async def merge(name: str, base: Files, ours: Files, theirs: Files, variables: Mapping[str, str]) -> Merged:
    """Merge the changes from `base` to `theirs` into `ours`. Raises `HubError` where git cannot be run."""
    changes: dict[str, bytes | None] = {}
    conflicts = []
    for file in sorted({*base, *ours, *theirs}):
        was, mine, new = (files[file].content if file in files else None for files in (base, ours, theirs))
        if new in (was, mine):
            continue
        if mine == was:
            changes[file] = new
            continue
        text, clean = await _one(was, mine, new, variables)
        if clean:
            changes[file] = text.encode()
        else:
            conflicts.append(Conflict(file=file, text=text))
    if FILE in changes and not conflicts:
        conflicts = _still_a_skill(name, changes[FILE])
    return Merged(changes=changes, conflicts=tuple(conflicts))


async def _one(
    was: bytes | None, mine: bytes | None, new: bytes | None, variables: Mapping[str, str]
) -> tuple[str, bool]:
    """One file that both sides changed: the merged text, or the conflict."""
    if mine is None:
        return "You removed it, and it was changed at its source.\n", False
    if new is None:
        return "You changed it, and it was removed at its source.\n", False
    texts = [text_or_none(each) for each in (mine, was or b"", new)]
    if any(text is None for text in texts):
        return "Both sides changed it, and it is not text.\n", False
    return await _lines([mine, was or b"", new], variables)


async def _lines(versions: list[bytes], variables: Mapping[str, str]) -> tuple[str, bool]:
    with tempfile.TemporaryDirectory(prefix="hermes-merge-") as folder:
        paths = [Path(folder, name) for name in ("yours", "base", "new")]
        for path, content in zip(paths, versions, strict=True):
            await asyncio.to_thread(path.write_bytes, content)
        labels = [part for path in paths for part in ("-L", path.name)]
        words = [found_git(variables), "merge-file", "-p", "--diff3", *labels, *map(str, paths)]
        try:
            ended = await run(words, env={"LC_ALL": "C.UTF-8"}, cwd=folder, seconds=SECONDS)
        except (OSError, TimeoutError) as error:
            raise HubError(f"git merge-file failed: {str(error) or 'it took too long'}.") from error
    if ended.code >= FAILED:
        raise HubError(f"git merge-file failed: {ended.err.decode('utf-8', 'replace').strip()[:300]}")
    return ended.out.decode("utf-8", "replace"), ended.code == 0


def _still_a_skill(name: str, content: bytes | None) -> list[Conflict]:
    if content is None:
        return [Conflict(file=FILE, text="It was removed at its source.\n")]
    try:
        read(content.decode(), name)
    except BadSkill as error:
        return [Conflict(file=FILE, text=f"What the merge gives is not a skill: {error}\n")]
    return []
