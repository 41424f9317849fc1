"""The unchanged files of skills from elsewhere, and of originals that were copied: one folder for each hash."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path

from hermes_agent.host.files import PRIVATE_FOLDER
from hermes_agent.skills.depot import HUB, STORE
from hermes_agent.skills.depot.files import Content, Files, files_of_folder, hash_of_files, write_files
from hermes_agent.skills.depot.lock import stored

QUARANTINE = "quarantine"
NEW = ".new-"
HOUR = 3600.0


class Depot:
    """The folder `.hub/store` of one home. A folder in it is written elsewhere and moved in as a whole. Blocks."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.quarantine = home / HUB / QUARANTINE

    def hold(self, name: str, files: Files) -> Path:
        """Put files where a person can look at them and nothing uses them; the folder."""
        self.quarantine.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        folder = self.quarantine / os.urandom(6).hex() / name
        write_files(folder, files)
        return folder

    def take(self, held: Path, found: str) -> Path:
        """Move what was held to its place; where it is already, it is thrown away."""
        place = stored(self._home, found, held.name)
        place.parent.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        if hash_of_files(files_of_folder(place)) != found:
            shutil.rmtree(place.parent, ignore_errors=True)
            held.parent.rename(place.parent)
        self.drop(held)
        return place

    def keep(self, name: str, files: Files, found: str) -> None:
        """Keep files under their hash, beside whoever installs something."""
        folder = self._home / HUB / STORE / f"{NEW}{os.urandom(6).hex()}" / name
        folder.parent.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        write_files(folder, files)
        self.take(folder, found)

    def files(self, found: str, name: str) -> dict[str, Content]:
        """The files of that hash; empty where they are not here."""
        return files_of_folder(stored(self._home, found, name))

    def drop(self, held: Path) -> None:
        """Throw away what was held."""
        shutil.rmtree(held.parent, ignore_errors=True)

    def sweep(self, used: Collection[tuple[str, str]], now: float) -> None:
        """Remove what a killed program left, and what no (hash, name) of these needs. What somebody else may be about
        to keep is left alone for an hour."""
        shutil.rmtree(self.quarantine, ignore_errors=True)
        kept = {stored(self._home, found, name).parent.name for found, name in used}
        store = self._home / HUB / STORE
        for folder in store.iterdir() if store.is_dir() else ():
            fresh = folder.name.startswith(NEW) and folder.stat().st_mtime + HOUR > now
            if folder.name not in kept and not fresh:
                shutil.rmtree(folder, ignore_errors=True)
