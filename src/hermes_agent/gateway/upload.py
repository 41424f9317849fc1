"""Request bodies with a file, streamed from disk: raw or multipart."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from hermes_agent.core.chat import Attachment
from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import NeverHere

PIECE = 1_000_000
KIND = re.compile(r"[\w.+-]+/[\w.+-]+")
SIGNS = re.compile(r'["\\\r\n]')


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A request body with a file, streamed from disk between the byte strings `before` and `after`; `size` in bytes."""

    path: Path
    size: int
    media_type: str
    before: bytes = b""
    after: bytes = b""

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body in chunks. Raises `OSError` if the file can no longer be read."""
        yield self.before
        with await asyncio.to_thread(self.path.open, "rb") as file:
            while piece := await asyncio.to_thread(file.read, PIECE):
                yield piece
        yield self.after


async def bytes_of(file: Attachment) -> bytes:
    """The content of an outgoing file. Raises `NeverHere`."""
    try:
        return await asyncio.to_thread(Path(file.path).read_bytes)
    except OSError as error:
        raise unreadable(file.name, error) from error


async def upload(file: Attachment) -> Upload:
    """A body of only the file. Raises `NeverHere`."""
    path = Path(file.path)
    try:
        with await asyncio.to_thread(path.open, "rb") as opened:
            size = os.fstat(opened.fileno()).st_size
    except OSError as error:
        raise unreadable(file.name, error) from error
    kind = file.media_type if KIND.fullmatch(file.media_type) else "application/octet-stream"
    return Upload(path=path, size=size, media_type=kind)


async def form(field: str, file: Attachment, values: Mapping[str, Any]) -> Upload:
    """A multipart form with a file; values that are not text are written as JSON. Raises `NeverHere`."""
    body, mark = await upload(file), secrets.token_hex(16)
    parts = [
        f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{_written(value)}\r\n'
        for name, value in values.items()
    ]
    head = f'--{mark}\r\nContent-Disposition: form-data; name="{field}"; filename="{SIGNS.sub("_", file.name)}"\r\n'
    before = f"{''.join(parts)}{head}Content-Type: {body.media_type}\r\n\r\n".encode()
    after = f"\r\n--{mark}--\r\n".encode()
    return Upload(
        path=body.path,
        size=len(before) + body.size + len(after),
        media_type=f"multipart/form-data; boundary={mark}",
        before=before,
        after=after,
    )


def unreadable(name: str, error: OSError) -> NeverHere:
    """The error for an outgoing file that cannot be read."""
    return NeverHere(f"The file {name} cannot be read: {error.strerror}.")


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
