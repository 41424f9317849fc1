"""Waking other processes on the same machine: one UNIX datagram socket per worker, and whoever has news sends to it."""

from __future__ import annotations

import hashlib
import logging
import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)

LONGEST_PATH = 100  # sun_path holds 104 bytes on macOS and 108 on Linux, with the closing NUL
# The same name in every process: TMPDIR may differ between two of them, or be long itself.
SHORT = Path("/tmp")
SUFFIX = ".sock"
NAME = len(f"/0123456789ab{SUFFIX}")


def bell_folder(home: Path) -> Path:
    """Where the sockets of all processes that share `home` are: `run/` in it, or a short name where that is too
    long."""
    folder = home.absolute() / "run"
    if len(os.fsencode(folder)) + NAME <= LONGEST_PATH:
        return folder
    mark = hashlib.sha256(os.fsencode(home.absolute())).hexdigest()[:16]
    return SHORT / f"hermes-{os.getuid()}-{mark}"


class Bell:
    """Sends an empty message to the socket of a worker; one that is gone, already rung or not to be reached is no
    error: it looks by itself now and then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket: socket.socket | None = None

    def ring(self, workers: Iterable[str]) -> None:
        """Wake these workers; "" is all."""
        names = set(workers)
        for name in self._all() if "" in names else [f"{name}{SUFFIX}" for name in names]:
            self._send(f"{self._folder}/{name}")

    def close(self) -> None:
        """Give back the sending socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _all(self) -> list[str]:
        # Names as the system gives them, no path objects.
        try:
            return [name for name in os.listdir(self._folder) if name.endswith(SUFFIX)]  # noqa: PTH208  (once per message)
        except FileNotFoundError:
            return []
        except OSError as error:
            log.warning("nobody can be woken: %s", error)
            return []

    def _send(self, path: str) -> None:
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._socket.setblocking(False)
            self._socket.sendto(b"", path)
        except ConnectionRefusedError:
            with suppress(OSError):
                Path(path).unlink(missing_ok=True)  # Its process died without taking the name away.
        except (FileNotFoundError, BlockingIOError):
            return
        except OSError as error:
            log.warning("%s cannot be woken: %s", Path(path).name, error)


def listen(folder: Path, worker: str) -> socket.socket:
    """The socket of this worker; it must be made before the worker's first look for mail, so that no ring is lost."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    path = folder / f"{worker}{SUFFIX}"
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        bell.bind(os.fspath(path))
        bell.setblocking(False)
    except BaseException:
        bell.close()
        raise
    return bell
