"""Log file of a home: one JSON object per line, secrets redacted, rotated by size."""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from hermes_agent.host.paths import PRIVATE_FILE

LARGEST = 5 * 1024 * 1024
KEPT = 3
ROOT = "hermes_agent"
LONGEST_TEXT = 20_000
_encoded = json.JSONEncoder(ensure_ascii=False).encode


class RotatedFile:
    """A rotated file that several processes may share. It opens with the first line. At `largest` bytes the file
    becomes `.1`, that one `.2`, up to `kept`. A full or missing disk loses lines, never a run."""

    def __init__(self, path: Path, redact: Callable[[str], str], *, largest: int = LARGEST, kept: int = KEPT) -> None:
        self.path, self._name = path, str(path)
        self.redact = redact
        self._largest = largest
        self._kept = kept
        self._handle: int | None = None
        self._torn = False

    def write(self, text: str) -> None:
        """Write lines without secrets, and an end of the last."""
        line = (self.redact(text) + "\n").encode("utf-8", "backslashreplace")
        if self._torn:  # A disk that was full took the beginning of a line: the next one is a line of its own.
            line = b"\n" + line
        with suppress(OSError):
            self._torn = os.write(self._current(len(line)), line) < len(line)

    def close(self) -> None:
        """Close the file; a later line opens it again."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _current(self, more: int) -> int:
        """The open file, which is the one under the path even where another process turned it over."""
        handle, size = self._open()
        if size + more <= self._largest:
            return handle
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return handle  # Another process turns it over, or stands still while it does: logging waits for nobody.
        if (self._size_of(handle) or 0) + more > self._largest:
            self._turn_over()
        self.close()
        return self._open()[0]

    def _open(self) -> tuple[int, int]:
        """The open file, and its bytes."""
        if self._handle is not None and (size := self._size_of(self._handle)) is not None:
            return self._handle, size
        self.close()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._handle = os.open(self.path, flags, PRIVATE_FILE)
        return self._handle, os.fstat(self._handle).st_size

    def _size_of(self, handle: int) -> int | None:
        """Bytes of a file; None where it is not the one under the path any more."""
        try:
            there, ours = os.stat(self._name), os.fstat(handle)  # noqa: PTH116  for each line: a `Path` takes five times as long
        except FileNotFoundError:
            return None
        return ours.st_size if os.path.samestat(ours, there) else None

    def _turn_over(self) -> None:
        for number in range(self._kept - 1, 0, -1):
            with suppress(FileNotFoundError):
                self._numbered(number).replace(self._numbered(number + 1))
        self.path.replace(self._numbered(1))

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


class LogFile(logging.Handler):
    """Logging handler over a rotated file."""

    def __init__(self, path: Path, redact: Callable[[str], str], *, largest: int = LARGEST, kept: int = KEPT) -> None:
        super().__init__(logging.INFO)
        self._file = RotatedFile(path, redact, largest=largest, kept=kept)

    def emit(self, record: logging.LogRecord) -> None:
        self._file.write(_line(record))

    def close(self) -> None:
        """Stop writing; later records go to the handlers before this one."""
        logger = logging.getLogger(ROOT)
        logger.removeHandler(self)
        logger.propagate = not any(isinstance(handler, LogFile) for handler in logger.handlers)
        self._file.close()
        super().close()


def open_log(path: Path, redact: Callable[[str], str]) -> LogFile:
    """Log everything below `hermes_agent` to this file, in place of an earlier one; does not touch the disk."""
    logger = logging.getLogger(ROOT)
    for old in [handler for handler in logger.handlers if isinstance(handler, LogFile)]:
        old.close()
    handler = LogFile(path, redact)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    return handler


def log_of(name: str, *, session: str = "", run: str = "") -> logging.LoggerAdapter[logging.Logger]:
    """A logger whose lines carry these ids."""
    return logging.LoggerAdapter(logging.getLogger(f"{ROOT}.{name}"), {"session": session, "run": run})


@lru_cache(maxsize=1)
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _line(record: logging.LogRecord) -> str:
    facts = {
        "time": f"{_second(int(record.created))}.{int(record.created % 1 * 1000):03}+00:00",
        "level": record.levelname.lower(),
        "part": record.name.removeprefix(f"{ROOT}."),
        "session": getattr(record, "session", ""),
        "run": getattr(record, "run", ""),
        "process": record.process,
        "text": record.getMessage()[:LONGEST_TEXT],
    }
    if record.exc_info:
        facts["error"] = logging.Formatter().formatException(record.exc_info)[-LONGEST_TEXT:]
    return _encoded({name: value for name, value in facts.items() if value})
