"""The TCP connections of this process, as the kernel sees them."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path


def connections() -> dict[tuple[object, object], bool]:
    """Each connected TCP socket of this process, by its own address and its peer's: whether a small write leaves it at
    once, also while an earlier one is not confirmed (TCP_NODELAY)."""
    found: dict[tuple[object, object], bool] = {}
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # It listens, or was closed meanwhile.
            if entry.readlink().name.startswith("socket:"):
                found |= looked_at(int(entry.name))
    return found


def looked_at(descriptor: int) -> dict[tuple[object, object], bool]:
    with socket.socket(fileno=os.dup(descriptor)) as each:
        if each.type != socket.SOCK_STREAM or each.family == socket.AF_UNIX:
            return {}
        ends = (each.getsockname(), each.getpeername())
        return {ends: bool(each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))}
