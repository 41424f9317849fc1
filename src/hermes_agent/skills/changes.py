"""Changes to skill files: author and result, three-way merge, and the atomic swap of a skill's folder."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from difflib import SequenceMatcher
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import PRIVATE_FOLDER, write_private
from hermes_agent.skills.format import inside
from hermes_agent.skills.skill import FILE
from hermes_agent.store.versions import By as By  # for the surfaces, which do not import the store


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Result of a change: the version (0: nothing changed), the file, and how the patched text was found."""

    name: str
    file: str
    version: int
    folder: str = ""
    note: str = ""


AROUND = 2
"""Lines around a change by which it is found again."""


class Conflict(HermesError):
    """A change that does not fit the file's current content."""


def rebased(current: bytes | None, base: bytes | None, target: bytes | None) -> bytes | None:
    """Apply the change from `base` to `target` to `current`; exactly `target` where nothing else changed. Raises
    `Conflict`."""
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
    """Merges two homes' changes of a file; where both changed the same lines, a person's local edit wins."""
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


SWAP = ".swap"
ARCHIVE = ".archive"
OLD, NEW = "old", "new"
RUNS = 0o700
PROGRAMS = (b"#!", b"\x7fELF")
"""What a file begins with that is made anew and may be run."""


def swap_folder(
    home: Path, folder: Path, changes: Mapping[str, bytes | None], act: str, runs: Collection[str] = ()
) -> None:
    """Change several files of a skill atomically (None: the file is removed), or create its folder; `runs` are the
    executable ones. Blocks. A crash leaves the old folder, the new one, or, until `mend` is called, none."""
    beside = home / SWAP / act
    new, old = beside / NEW, beside / OLD / folder.relative_to(home)
    if folder.is_dir():
        shutil.copytree(folder, new, symlinks=True)
    new.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    for file, content in changes.items():
        swap(new / file, content, runs=file in runs)
    if folder.is_dir():
        old.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        folder.rename(old)
    folder.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    new.rename(folder)
    shutil.rmtree(beside, ignore_errors=True)


def render(home: Path, folder: Path, place: Path, files: Mapping[str, bytes | None]) -> None:
    """Write another home's version of a skill into its `folder` or a new `place`; a removed skill is archived.
    Blocks."""
    there = folder.is_dir()
    if there and FILE in files and files[FILE] is None:
        put_aside(folder, home / ARCHIVE / folder.name)
        return
    for file in sorted(files, key=lambda each: each == FILE):  # What makes it a skill comes last.
        path = inside(folder if there else place, file, anywhere=True)
        swap(path, files[file], runs=file in programs_in(files))


def programs_in(files: Mapping[str, bytes | None]) -> frozenset[str]:
    """The files that start like a program; the ledger does not store the executable bit."""
    return frozenset(file for file, content in files.items() if content and content.startswith(PROGRAMS))


def swap(path: Path, content: bytes | None, *, runs: bool = False) -> None:
    """Replace one file, or remove it (None); keeps its executable bit. Blocks."""
    if content is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    runs = runs or (path.exists() and bool(path.stat().st_mode & 0o100))
    write_private(path, content)
    if runs:
        path.chmod(RUNS)


def put_aside(old: Path, new: Path) -> None:
    """Move a skill's folder, in place of an earlier one there. Blocks."""
    new.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    if new.exists():  # An earlier one of that name: its history is in the ledger.
        shutil.rmtree(new)
    old.rename(new)


def mend(home: Path) -> None:
    """Restore folders that a killed program moved away and did not replace. Blocks; the caller holds the lock."""
    for beside in (home / SWAP).iterdir() if (home / SWAP).is_dir() else ():
        # The outermost first: what stands inside a skill goes with it.
        for found in sorted((beside / OLD).rglob(FILE), key=lambda path: len(path.parts)):
            place = home / found.parent.relative_to(beside / OLD)
            if found.exists() and not place.exists():
                place.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
                found.parent.rename(place)
        shutil.rmtree(beside, ignore_errors=True)
