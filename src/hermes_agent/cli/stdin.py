"""Reads standard input: as text if small, else into a file."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.host.late import late
from hermes_agent.tools.files.content import SNIFFED, binary_kind, image_type, plain_text

if TYPE_CHECKING:
    from hermes_agent.app.intake import Spooled

SPOOL = "hermes_agent.app.intake:spool"
PATIENCE = 3.0
"""Seconds after which a pipe that brings nothing is spoken of: a forgotten one would look like a hang."""
MOST_HELD = 4 * 1024 * 1024
"""Bytes that are held in memory; more than that is a message in no model's window."""
MOST_READ = 1_000_000_000
"""Bytes that are read at all: what never ends would fill the disk."""
PIECE = 1024 * 1024


def read_stdin(prompt: str, folder: Path, most: int = MOST_READ) -> str | Spooled:
    """The content of standard input if it is a pipe or file; empty for a terminal or /dev/null.

    Text is returned with invalid UTF-8 replaced. A picture, other binary data, or more than `MOST_HELD` bytes are
    saved as a file in `folder`. Raises `HomeError` if that cannot be written.
    """
    try:
        handle = sys.stdin.fileno()
        kind = os.fstat(handle).st_mode
    except (AttributeError, OSError, ValueError):
        return ""
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return ""
    pieces, held = _read(handle, most, asked=bool(prompt)), b""
    for piece in pieces:
        held += piece
        if len(held) > MOST_HELD:
            break
    if len(held) <= MOST_HELD and not (image_type(held) or binary_kind(held[:SNIFFED])):
        return plain_text(held)
    spooled: Spooled = late(SPOOL)(folder, _joined(held, pieces))
    return spooled


def _joined(held: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield held
    yield from pieces


def _read(handle: int, most: int, *, asked: bool) -> Iterator[bytes]:
    """The content in pieces; tells the person once if it takes long, and if it is truncated."""
    size, told = 0, False
    while size < most:
        if (asked or size) and not told and not select.select([handle], [], [], PATIENCE)[0]:
            told = True
            came = f", of which {size:,} bytes came" if size else ""
            sys.stderr.write(
                f"Waiting for the rest of the prompt on standard input{came} (`< /dev/null` if there is none).\n"
            )
        piece = os.read(handle, PIECE)
        if not piece:
            return
        size += len(piece)
        yield piece
    cut = f"Standard input was cut after {size:,} bytes; what came later was not read."
    sys.stderr.write(f"{cut}\n")
    yield f"\n[{cut}]\n".encode()
