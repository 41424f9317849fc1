"""What systemd is told by a service that it started (sd_notify(3)): that it is ready, and that its loop still turns."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

SHARE = 3
"""Signs of life in the time after which systemd takes the service for hung."""


class Supervisor:
    """Whoever started this process and watches it; where nobody does, everything here does nothing."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        address = variables.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        limit = variables.get("WATCHDOG_USEC", "")
        meant = variables.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        self.seconds = int(limit) / 1e6 if limit.isdecimal() and meant and self._address else 0.0
        """After so many seconds without a sign of life the service is started anew; 0: never."""

    def notify(self, *lines: str) -> None:
        """Say something, e.g. `READY=1`; one that cannot be reached is no error."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as way:
            way.setblocking(False)
            way.sendto("\n".join(lines).encode(), self._address)

    async def reassure(self, gets_on: Callable[[], Awaitable[bool]]) -> None:
        """Give signs of life from this loop until cancelled, as long as it `gets_on`: one that hangs gives none."""
        while self.seconds:
            if await gets_on():
                self.notify("WATCHDOG=1")
            await asyncio.sleep(self.seconds / SHARE)
