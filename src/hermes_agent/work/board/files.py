"""Files of cards: reads what is attached, and keeps a copy in the base home."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import Home, write_private
from hermes_agent.store.work.cards import CardFile

LARGEST = 25 << 20
FOLDER = "board"
MOST_COPIES = 20


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


def copy(file: CardFile, folder: str) -> str:
    """Copy a kept file into a folder under its name, beside what is there; its path. Raises `HermesError`. Blocks."""
    content, name = Path(file.path).read_bytes(), Path(folder) / file.name
    for number in range(MOST_COPIES):
        path = name if not number else name.with_name(f"{name.stem}-{number}{name.suffix}")
        with suppress(FileExistsError):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as there:
                there.write(content)
            return str(path)
    raise HermesError(f"{name} is there {MOST_COPIES} times already.")


def drop(kept: Iterable[CardFile]) -> None:
    """Remove the copies of a card that is gone. Blocks."""
    for folder in {Path(file.path).parent for file in kept}:
        shutil.rmtree(folder, ignore_errors=True)
