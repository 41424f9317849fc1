"""What an editor holds of files and did not save: it counts as their present content."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
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

    def put(self, session: str, read: ReadBuffer) -> None:
        """Ask this editor in that session."""
        self._editors[session] = read

    def drop(self, session: str) -> None:
        """Ask nobody any more."""
        self._editors.pop(session, None)

    def has(self, session: str) -> bool:
        """Whether there is an editor to ask."""
        return session in self._editors

    async def unsaved(self, session: str, files: Iterable[Path], workspace: str) -> dict[Path, bytes]:
        """The contents that the editor holds of files in the workspace, where they are not those of the disk."""
        found: dict[Path, bytes] = {}
        root = await asyncio.to_thread(os.path.realpath, workspace)
        for real in files:
            read = self._editors.get(session)
            if read is None or not real.is_relative_to(root):
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
