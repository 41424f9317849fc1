"""The folder of skills as it was before a pass: one file, verified, of which a few are kept."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

from hermes_agent.core.errors import HomeError
from hermes_agent.host.files import PRIVATE_FOLDER, write_private
from hermes_agent.skills.depot import Content, is_hidden

# What is made again by itself, what can be fetched again, and what is held while somebody writes.
LEFT_OUT = (".hub/store", ".hub/quarantine", ".swap")
ENDING = ".tar.gz"


def take(skills: Path, path: Path) -> int:
    """Write all files of a folder of skills into one, and read it back; how many there are. Blocks. Raises `HomeError`
    where they are not the same."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz", compresslevel=6) as archive:
        for file in _files(skills):
            archive.add(file, arcname=file.relative_to(skills).as_posix(), recursive=False)
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    write_private(path, held.getvalue())
    kept = Snapshot(path)
    there = {file.relative_to(skills).as_posix() for file in _files(skills)}
    if set(kept.names()) != there:
        raise HomeError(f"The snapshot {path} does not hold what stands in {skills}: nothing was changed.")
    return len(there)


def forget_all_but(folder: Path, keep: int) -> None:
    """Remove the oldest. Blocks."""
    there = folder.glob(f"*{ENDING}") if folder.is_dir() else ()
    kept = sorted(there, key=lambda path: (path.stat().st_mtime_ns, path.name))
    for path in kept[: max(0, len(kept) - keep)]:
        path.unlink(missing_ok=True)


class Snapshot:
    """One snapshot, to be read. Blocks."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> list[str]:
        """The paths of all files, below the folder of skills. Raises `HomeError`."""
        try:
            with tarfile.open(self.path, "r:gz") as archive:
                return archive.getnames()
        except (OSError, tarfile.TarError) as error:
            raise HomeError(f"The snapshot {self.path} cannot be read: {error}") from error

    def files(self, place: str) -> dict[str, Content]:
        """The files below a folder, by their path in it; none where it was not there. Raises `HomeError`."""
        try:
            with tarfile.open(self.path, "r:gz") as archive:
                members = [each for each in archive.getmembers() if each.isfile() and each.name.startswith(f"{place}/")]
                found = {each.name.removeprefix(f"{place}/"): _content(archive, each) for each in members}
        except (OSError, tarfile.TarError) as error:
            raise HomeError(f"The snapshot {self.path} cannot be read: {error}") from error
        return {name: each for name, each in found.items() if not is_hidden(name)}


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Content:
    held = archive.extractfile(member)
    return Content(content=held.read() if held else b"", runs=bool(member.mode & 0o100))


def _files(skills: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(skills):
        here = Path(place)
        folders[:] = sorted(each for each in folders if (here / each).relative_to(skills).as_posix() not in LEFT_OUT)
        for name in sorted(names):
            if (here / name).is_file() and not name.endswith((".lock", ".new")):
                yield here / name
