"""Replacing a skill's folder as a whole: made beside, moved in, and mended after a program died between."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from hermes_agent.host.files import PRIVATE_FOLDER, write_private
from hermes_agent.skills.skill import FILE

SWAP = ".swap"
OLD, NEW = "old", "new"
RUNS, PLAIN = 0o700, 0o600


def swap_folder(
    home: Path, folder: Path, changes: Mapping[str, bytes | None], act: str, runs: Collection[str] = ()
) -> None:
    """Change the files of a skill at once (None: the file goes), or make its folder; `runs` names those that may be
    run. Blocks. A program that dies in it leaves the old folder, the new one, or, until `mend` is called, none."""
    beside = home / SWAP / act
    new, old = beside / NEW, beside / OLD / folder.relative_to(home)
    if folder.is_dir():
        shutil.copytree(folder, new, symlinks=True)
    new.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    for file, content in changes.items():
        path = new / file
        if content is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        mode = RUNS if file in runs or (path.exists() and path.stat().st_mode & 0o100) else PLAIN
        write_private(path, content)
        path.chmod(mode)
    if folder.is_dir():
        old.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        folder.rename(old)
    folder.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    new.rename(folder)
    shutil.rmtree(beside, ignore_errors=True)


def mend(home: Path) -> None:
    """Put back the folders that a dead program took away and did not replace. Blocks; for the holder of the lock."""
    for beside in (home / SWAP).iterdir() if (home / SWAP).is_dir() else ():
        # The outermost first: what stands inside a skill goes with it.
        for found in sorted((beside / OLD).rglob(FILE), key=lambda path: len(path.parts)):
            place = home / found.parent.relative_to(beside / OLD)
            if found.exists() and not place.exists():
                place.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
                found.parent.rename(place)
        shutil.rmtree(beside, ignore_errors=True)
