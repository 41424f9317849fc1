"""In which folder each group of commands began, where a place has a part of its own for each folder."""

from __future__ import annotations

import os
import threading
from pathlib import Path


class GroupFolders:
    """Small files, one per group, on this machine: what runs in the place cannot change them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, str] = {}

    def of(self, group: str, begins_in: str = "") -> str:
        """The folder where the group began, now in `begins_in` if it never did; empty where it never did. Blocks."""
        if group not in self._known:
            file = self._folder / group
            if file.exists():
                self._known[group] = file.read_text()
            elif begins_in:
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                beside = self._folder / f".{group}.{os.getpid()}.{threading.get_ident()}"
                beside.write_text(begins_in)
                beside.replace(file)  # nobody reads half of it
                self._known[group] = begins_in
        return self._known.get(group, "")
