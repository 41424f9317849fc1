"""The files of one skill in a repository, and what may not be among them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from hermes_agent.skills.depot.files import LARGEST_FILE, is_hidden
from hermes_agent.skills.hub.errors import HubError
from hermes_agent.skills.hub.git import TreeEntry
from hermes_agent.skills.skill import FILE

MOST_FILES = 200
LARGEST_SKILL = 16 << 20
DEEPEST = 8
LINK, MODULE, RUNS = "120000", "160000", "100755"
FORBIDDEN = frozenset('\\:*?"<>|')
"""What cannot stand in a file's name everywhere."""


def select_files(entries: Sequence[TreeEntry], path: str) -> dict[str, TreeEntry]:
    """The entries of a skill's folder by their path in it, hidden ones left out. Raises `HubError` with every reason
    why they cannot be taken."""
    inside = {entry.path.removeprefix(f"{path}/" if path else ""): entry for entry in entries}
    shown = {name: entry for name, entry in inside.items() if not is_hidden(name)}
    found = [*_too_much(shown), *(why for name, entry in shown.items() if (why := _wrong(name, entry)))]
    found += _collisions(shown)
    if FILE not in shown:
        found.insert(0, f"there is no {FILE}")
    if found:
        more = f", and {len(found) - 5} more" if len(found) > 5 else ""
        raise HubError(f"The skill in `{path or '.'}` cannot be taken: {'; '.join(found[:5])}{more}.")
    return shown


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
        return f"`{name[:80]!a}` is not a name for a file"
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
