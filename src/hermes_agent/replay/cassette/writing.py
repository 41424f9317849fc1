"""A cassette that is being recorded: a file to which lines are added as things happen."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_agent.core.errors import CassetteError
from hermes_agent.host.files import PRIVATE_FILE, reason, way_out
from hermes_agent.replay.cassette.lines import Line, plain_of
from hermes_agent.replay.cassette.redacting import Redact, without_secrets
from hermes_agent.store.bodies import written


class CassetteFile:
    """A new file, readable by its owner alone, that only grows: each line is one write, so that a death of the process
    leaves at most the last one torn. Raises `CassetteError` where the file exists or cannot be written."""

    def __init__(self, path: Path, redact: Redact) -> None:
        self.path = path
        self.redact = redact
        self._handle: int | None = None
        self._made = False

    def open(self) -> None:
        """Make the file, or go on with the one that this object made."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | (0 if self._made else os.O_CREAT | os.O_EXCL)
        try:
            self._handle = os.open(self.path, flags, PRIVATE_FILE)
        except FileExistsError as error:
            raise CassetteError(f"{self.path} exists: a recording needs a new file.") from error
        except OSError as error:
            raise self._unwritable(error) from error
        self._made = True

    def add(self, line: Line) -> None:
        """Write a line, its secrets replaced."""
        assert self._handle is not None  # lines come between `open` and `close`
        text = written(without_secrets(plain_of(line), self.redact)).encode()
        try:
            left = memoryview(text + b"\n")
            while left:
                left = left[os.write(self._handle, left) :]
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """The recording is over, or paused."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _unwritable(self, error: OSError) -> CassetteError:
        return CassetteError(f"{self.path} cannot be written ({reason(error)}): {way_out(error, self.path)}")
