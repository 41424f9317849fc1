"""Files of cards: reads what is attached, and keeps a copy in the base home."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import Home, write_private
from hermes_agent.store.work.cards import CardFile

LARGEST = 25 << 20
FOLDER = "board"


def read(path: str, folder: str, *, confined: bool) -> tuple[str, bytes]:
    """Name and content of a regular file of at most 25 MB; where `confined`, only one in the folder. Raises
    `HermesError`. Blocks."""
    if not path or "\0" in path or ".." in Path(path).parts:
        raise HermesError(f"`{path}` cannot be attached: name a file without `..`.")
    if not folder and (confined or not Path(path).is_absolute()):
        raise HermesError(f"{path}: say its whole path; the card has no workspace yet.")
    full = Path(folder) / path
    if confined:
        full = full.parent.resolve() / full.name
        if not full.is_relative_to(Path(folder).resolve()):
            raise HermesError(f"{path} leads out of the workspace.")
    try:
        handle = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise HermesError(f"{path} cannot be attached: {error.strerror}.") from error
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise HermesError(f"{path} cannot be attached: it is not a file.")
        if found.st_size > LARGEST:
            raise HermesError(f"{path} has {found.st_size >> 20:,} MB; at most {LARGEST >> 20} can be attached.")
        with os.fdopen(os.dup(handle), "rb") as file:
            return full.name, file.read(LARGEST)
    finally:
        os.close(handle)


def keep(home: Home, card: str, name: str, content: bytes, who: str) -> CardFile:
    """Store the content for the card; durable when it returns. Blocks."""
    digest = hashlib.sha256(content).hexdigest()
    folder = home.base / FOLDER / card
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / digest[:32]
    write_private(path, content)
    return CardFile(card=card, name=name, sha256=digest, bytes=len(content), path=str(path), by=who)


def drop(home: Home, card: str) -> None:
    """Remove the copies of a card that is gone. Blocks."""
    shutil.rmtree(home.base / FOLDER / card, ignore_errors=True)
