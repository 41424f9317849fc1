"""What an editor gives to a session: folders besides its workspace, and the content of files that it did not save."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from hermes_agent.tools.files.content import SNIFFED, binary_kind, coding_of, newline_of

LARGEST = 64 << 20
ReadBuffer: TypeAlias = Callable[[str], Awaitable[str | None]]
"""The text of an editor's buffer for a path; None where it tells none."""


class Buffers:
    """The editors of sessions, by session."""

    def __init__(self) -> None:
        self._editors: dict[str, ReadBuffer] = {}
        self._folders: dict[str, tuple[str, ...]] = {}

    def folders(self, session: str) -> tuple[str, ...]:
        """Real paths of the folders that the session works in besides its workspace."""
        return self._folders.get(session, ())

    def add(self, session: str, folders: Sequence[str]) -> None:
        """Have the session work in these too (real paths, allowed by the walls), instead of those before."""
        self._folders[session] = tuple(folders)

    def put(self, session: str, read: ReadBuffer) -> None:
        """Ask this editor in that session."""
        self._editors[session] = read

    def drop(self, session: str) -> None:
        """Ask nobody any more."""
        self._editors.pop(session, None)
        self._folders.pop(session, None)

    def has(self, session: str) -> bool:
        """Whether there is an editor to ask."""
        return session in self._editors

    async def unsaved(self, session: str, files: Iterable[Path], workspace: str) -> dict[Path, bytes]:
        """The contents that the editor holds of files in the session's folders, where they are not those of the
        disk."""
        found: dict[Path, bytes] = {}
        roots = (await asyncio.to_thread(os.path.realpath, workspace), *self.folders(session))
        for real in files:
            read = self._editors.get(session)
            if read is None or not any(map(real.is_relative_to, roots)):
                continue
            text = await read(str(real))
            content = None if text is None else await asyncio.to_thread(_differs, real, text)
            if content is not None:
                found[real] = content
        return found


def _differs(real: Path, text: str) -> bytes | None:
    """The text in the file's encoding and line ends; None where the file holds it, or is none that holds text."""
    if not real.is_file() or real.stat().st_size > LARGEST:
        return None
    disk = real.read_bytes()
    if binary_kind(disk[:SNIFFED]):
        return None
    coding = coding_of(disk)
    plain = text.replace("\r\n", "\n")
    crlf = newline_of(coding.decode(disk)) == "\r\n"
    content = coding.encode(plain.replace("\n", "\r\n") if crlf else plain)
    return None if content == disk else content
