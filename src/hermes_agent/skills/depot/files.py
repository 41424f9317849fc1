"""The files of one skill as they are kept, and the hash that they are pinned to."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from hermes_agent.core.dataclass import dataclass

LARGEST_FILE = 1 << 20
"""Bytes of a file that is taken from elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A file as it is kept: its bytes, and whether it may be run."""

    content: bytes
    runs: bool = False


Files = Mapping[str, Content]
"""By path inside the skill, with `/`."""


def hash_of_files(files: Files) -> str:
    """The hash of all names, contents and rights to run; of nothing else."""
    lines = sorted(
        f"{path}\0{'x' if each.runs else '-'}\0{hashlib.sha256(each.content).hexdigest()}\n"
        for path, each in files.items()
    )
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def files_of_folder(folder: Path) -> dict[str, Content]:
    """The files that stand in a skill's folder, hidden ones, links and larger ones left out. Blocks."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if is_hidden(name) or path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_FILE * 4:
            continue
        found[name] = Content(content=path.read_bytes(), runs=os.access(path, os.X_OK))
    return found


def write_files(folder: Path, files: Files) -> None:
    """Write a skill into a folder that nobody looks into yet, down to the disk. Blocks."""
    for name, each in files.items():
        path = folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o700 if each.runs else 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(each.content)
            file.flush()
            os.fsync(file.fileno())


def text_or_none(content: bytes) -> str | None:
    """The content as text, where it is one."""
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def is_hidden(name: str) -> bool:
    """Whether a path inside a skill is nobody's content: `.git`, `.DS_Store`."""
    return any(part.startswith(".") for part in name.split("/"))
