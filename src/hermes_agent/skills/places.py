"""Folders where skills are found: the home's, installed ones, the project's, external ones, and those shipped with
the program."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.skills.depot import HUB, STORE, used_folders
from hermes_agent.skills.skill import FILE, FOLDERS, Layer

BUNDLED = Path(__file__).parent / "builtin"
PROJECT_FOLDERS = (".hermes/skills", ".agents/skills")
# Never looked into: what holds no skills, or skills that are no longer in use.
PASSED_OVER = frozenset({"node_modules", "venv", "__pycache__", "site-packages", *FOLDERS})
MOST = 20_000
"""Skills that one root may hold; what is beyond is not found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """Folder that is searched for skills, with its layer. Skills are edited only in the `user` layer."""

    path: Path
    layer: Layer

    @property
    def key(self) -> str:
        """Its name in the index."""
        return str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A folder with a SKILL.md, the category folder above it where there is one, and the state of the file."""

    folder: Path
    category: str
    stamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Skill folders of a home; a session adds its project's."""

    home: Path
    external: Sequence[str] = ()
    bundled: Path = BUNDLED
    project: bool = True

    def roots(self, workspace: str = "") -> tuple[Root, ...]:
        """The skill folders by precedence. Reads the disk."""
        found = [Root(path=self.home, layer=Layer.USER)]
        if (self.home / HUB / STORE).is_dir():
            found.append(Root(path=self.home / HUB / STORE, layer=Layer.HUB))
        if workspace and self.project:
            found += _of_project(Path(workspace))
        found += [Root(path=Path(each).expanduser().absolute(), layer=Layer.EXTERNAL) for each in self.external]
        found.append(Root(path=self.bundled, layer=Layer.BUNDLED))
        return tuple({root.key: root for root in reversed(found)}.values())[::-1]


def _of_project(workspace: Path) -> list[Root]:
    """The skills of the folder that a session works in, and of the git repository that it is part of."""
    above = next((each for each in (workspace, *workspace.parents) if (each / ".git").exists()), workspace)
    folders = [folder / name for folder in dict.fromkeys((workspace, above)) for name in PROJECT_FOLDERS]
    return [Root(path=folder, layer=Layer.PROJECT) for folder in folders if folder.is_dir()]


def found_in(root: Root) -> Iterator[Found]:
    """The skills of a root, one or two folders deep, in no order; none for a missing root."""
    if root.layer is Layer.HUB:
        yield from _installed(root.path.parent.parent)
        return
    left = MOST
    for entry in _folders(root.path, root):
        if stamp := _stamp(entry.path):
            yield Found(folder=Path(entry.path), category="", stamp=stamp)
            left -= 1
            continue
        for inner in _folders(entry.path, root):
            if stamp := _stamp(inner.path):
                yield Found(folder=Path(inner.path), category=entry.name, stamp=stamp)
                left -= 1
        if left <= 0:
            return


def _installed(home: Path) -> Iterator[Found]:
    """What the lock names; other folders there are not in use."""
    for folder in used_folders(home):
        if stamp := _stamp(str(folder)):
            yield Found(folder=folder, category="", stamp=stamp)


def _folders(path: str | Path, root: Root) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            # A project is somebody else's: a link there may lead anywhere.
            follow = root.layer is not Layer.PROJECT
            yield from (
                entry
                for entry in entries
                if not entry.name.startswith(".")
                and entry.name not in PASSED_OVER
                and entry.is_dir(follow_symlinks=follow)
            )
    except OSError:
        return


def _stamp(folder: str) -> str:
    try:
        found = os.lstat(f"{folder}/{FILE}")
    except OSError:
        return ""
    return f"{found.st_mtime_ns}.{found.st_size}.{found.st_ino}"
