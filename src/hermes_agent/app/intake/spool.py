"""Content of any size on its way into a private file, one piece of it in memory at a time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, HomeError
from hermes_agent.host.files import PRIVATE_FILE, PRIVATE_FOLDER, reason, way_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """A file that holds what came in; `lines` counts its line ends."""

    path: Path
    size: int
    lines: int


def spool(folder: Path, chunks: Iterable[bytes], ending: str = ".txt") -> Spooled:
    """Write the chunks into a file of this folder, for its owner alone. It is named by its content, so that the same
    content is the same file. Raises `HomeError`; whatever ends it early, no half of a file stays."""
    size, lines, digest = 0, 0, hashlib.sha256()
    temporary = folder / f".{os.urandom(8).hex()}.new"
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
        with os.fdopen(handle, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
                digest.update(chunk)
                size, lines = size + len(chunk), lines + chunk.count(b"\n")
            file.flush()
            os.fsync(file.fileno())
        path = folder / f"{digest.hexdigest()[:20]}{ending}"
        temporary.replace(path)
    except OSError as error:
        raise HomeError(f"{folder} cannot be written ({reason(error)}): {way_out(error, folder)}") from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    return Spooled(path=path, size=size, lines=lines)


def named(path: Path) -> Spooled:
    """A file that is there already, wherever it is. Raises `HermesError` where it is none that can be read."""
    lines, real = 0, path.expanduser().absolute()
    try:
        if not real.is_file():
            raise HermesError(f"{path} is {'not a file' if real.exists() else 'not there'}.")
        with real.open("rb") as file:
            while chunk := file.read(1 << 20):
                lines += chunk.count(b"\n")
            return Spooled(path=real, size=file.tell(), lines=lines)
    except OSError as error:
        raise HermesError(f"{path} cannot be read ({reason(error)}).") from error
