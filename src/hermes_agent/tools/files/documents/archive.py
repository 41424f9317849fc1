"""Checks that an office document is an archive that can be unpacked, within limits that hold for every kind."""

from __future__ import annotations

import io
import zipfile

from hermes_agent.tools.files.documents import Damaged

MOST_UNPACKED = 300 << 20
MOST_LINES = 200_000


def check_archive(content: bytes) -> None:
    """Raise `Damaged` for an office document that is no archive, or unpacks to more than 300 MB."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise Damaged("it is not an office document, or it is cut off") from error
    if size > MOST_UNPACKED:
        raise Damaged(f"it unpacks to {size:,} bytes")
