"""The small projects that the demo works on, kept as text files of this package."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

FOLDER = "project"
SUFFIX = ".txt"  # keeps the project's own modules and tests from being taken for this program's


def unpack_project(folder: Path, name: str = FOLDER) -> None:
    """Write the project of that name into `folder`, which is made where it does not exist. Raises `OSError`."""
    _unpack(files(__package__) / name, folder)


def _unpack(source: Traversable, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        if entry.is_dir():
            _unpack(entry, target / entry.name)
        elif entry.name.endswith(SUFFIX):
            (target / entry.name.removesuffix(SUFFIX)).write_bytes(entry.read_bytes())
