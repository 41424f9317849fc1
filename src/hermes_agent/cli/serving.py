"""A process that serves until it is told to end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def told_to_end() -> Iterator[asyncio.Event]:
    """What is set when the process is asked to end: by Ctrl-C, or SIGTERM."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    try:
        yield told
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def announce(text: str) -> None:
    """A line on standard output, at once: whoever started the server waits for it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
