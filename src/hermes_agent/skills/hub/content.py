"""The files of one skill from elsewhere: what may be among them, and the hash that they are pinned to."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hermes_agent.skills.hub.errors import HubError
from hermes_agent.skills.hub.git import TreeEntry
from hermes_agent.skills.skill import FILE

MOST_FILES = 200
LARGEST_FILE = 1 << 20
LARGEST_SKILL = 16 << 20
DEEPEST = 8
LINK, MODULE, RUNS = "120000", "160000", "100755"
FORBIDDEN = frozenset('\\:*?"<>|')
"""What cannot stand in a file's name everywhere."""


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


def chosen(entries: Sequence[TreeEntry], path: str) -> dict[str, TreeEntry]:
    """The entries of a skill's folder by their path in it, hidden ones left out. Raises `HubError` with every reason
    why they cannot be taken."""
    inside = {entry.path.removeprefix(f"{path}/" if path else ""): entry for entry in entries}
    shown = {name: entry for name, entry in inside.items() if not _hidden(name)}
    found = [*_too_much(shown), *(why for name, entry in shown.items() if (why := _wrong(name, entry)))]
    found += _collisions(shown)
    if FILE not in shown:
        found.insert(0, f"there is no {FILE}")
    if found:
        more = f", and {len(found) - 5} more" if len(found) > 5 else ""
        raise HubError(f"The skill in `{path or '.'}` cannot be taken: {'; '.join(found[:5])}{more}.")
    return shown


def files_of_folder(folder: Path) -> dict[str, Content]:
    """The files that stand in a skill's folder, hidden ones, links and larger ones left out. Blocks."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if _hidden(name) or path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_FILE * 4:
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


def _hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def _too_much(entries: Mapping[str, TreeEntry]) -> list[str]:
    found = []
    if len(entries) > MOST_FILES:
        found.append(f"it has {len(entries):,} files, at most {MOST_FILES} are taken")
    size = sum(entry.size for entry in entries.values())
    if size > LARGEST_SKILL:
        found.append(f"it has {size:,} bytes, at most {LARGEST_SKILL:,} are taken")
    return found


def _wrong(name: str, entry: TreeEntry) -> str:
    parts = PurePosixPath(name).parts
    if entry.kind == LINK:
        return f"`{name[:80]}` is a link"
    if entry.kind == MODULE:
        return f"`{name[:80]}` is another repository"
    if entry.size > LARGEST_FILE:
        return f"`{name[:80]}` has {entry.size:,} bytes, at most {LARGEST_FILE:,} are taken"
    odd = any(each in FORBIDDEN or not each.isprintable() for each in name)
    if odd or ".." in parts or len(parts) > DEEPEST or any(len(part.encode()) > 200 for part in parts):
        return f"`{name[:80]!a}` is no name for a file"
    return ""


def _collisions(names: Iterable[str]) -> list[str]:
    seen: dict[str, str] = {}
    found = []
    for name in names:
        key = unicodedata.normalize("NFC", name).casefold()
        if key in seen:
            found.append(f"`{seen[key][:80]}` and `{name[:80]}` are one name where upper and lower case are the same")
        seen[key] = name
    return found
