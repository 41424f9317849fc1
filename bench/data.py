"""Public data sets that some figures are measured on; they are not part of the project: `--data FOLDER` says where."""

from __future__ import annotations

import sys
from pathlib import Path

_given: list[Path] = []


def use(folder: Path) -> None:
    """Measure on the data sets in this folder."""
    _given[:] = [folder]


def dataset(name: str) -> Path | None:
    """The folder of one data set; None, with a line that says so, where it is not there."""
    folder = _given[0] / name if _given else None
    if folder is None or not folder.is_dir():
        print(f"skipped: the data set `{name}` is not here (--data FOLDER)", file=sys.stderr)
        return None
    return folder
