"""The time limits of commands on this machine, held by a process of their own: whatever becomes of this one."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic

from hermes_agent.host.process import start_detached

ENFORCER = Path(__file__).with_name("enforcer.py")


class TimeLimits:
    """Starts the enforcer with the first limit; it ends when this process has, and the commands."""

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python
        self._pipe: int | None = None
        self._alone = threading.Lock()

    def hold(self, record: Path, seconds: float) -> None:
        """Have the command of this record ended so many seconds from now, with everything that it started. Blocks, the
        first time for a millisecond or two. Raises `OSError`."""
        line = f"{monotonic() + seconds} {os.fsencode(record).hex()}\n".encode()
        with self._alone:
            if not self._parse(line):
                self._drop()  # it was killed, or stands still
                self._pipe = _started(self._python)
                os.write(self._pipe, line)

    def close(self) -> None:
        """Let the enforcer go when the commands have ended."""
        with self._alone:
            self._drop()

    def _parse(self, line: bytes) -> bool:
        with suppress(OSError):
            return self._pipe is not None and os.write(self._pipe, line) == len(line)
        return False

    def _drop(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
        self._pipe = None


def _started(python: str) -> int:
    """The end of a pipe whose other one a new enforcer reads."""
    reads, writes = os.pipe()
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        start_detached([python, "-I", "-S", str(ENFORCER)], cwd="/", env={}, stdin=reads, out=nowhere)
    except OSError:
        os.close(writes)
        raise
    finally:
        os.close(reads)
        os.close(nowhere)
    os.set_blocking(writes, False)
    return writes
