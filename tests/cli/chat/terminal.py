"""A real terminal for a real child process: a pty on one side, a screen to look at on the other."""

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from fcntl import ioctl
from pathlib import Path

import pyte

from tests.architecture.source import ROOT
from tests.measured import measured

PROGRAM = ("-c", "import sys; from hermes_agent.cli.main import main; sys.exit(main())")
PATIENCE = 20.0


class Terminal:
    """`hermes ARGUMENTS` (or another Python child) at a terminal of so many columns and rows."""

    def __init__(
        self,
        *arguments: str,
        home: Path,
        folder: Path,
        columns: int = 80,
        rows: int = 24,
        term: str = "xterm-256color",
        program: tuple[str, ...] = PROGRAM,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.raw = b""
        self._screen = pyte.HistoryScreen(columns, rows, history=5000)
        self._stream = pyte.ByteStream(self._screen)
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = {
            "HERMES_HOME": str(home),
            "HOME": str(home),
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            **measured(),
            "PATH": os.environ["PATH"],
            "TERM": term,
            "LANG": "C.UTF-8",
            **(variables or {}),
        }
        self.process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        os.close(self._master)

    @property
    def lines(self) -> list[str]:
        """Everything that was ever on the screen and stayed: the scrollback, then what is visible."""
        above = [
            "".join(line[column].data for column in range(self._screen.columns)) for line in self._screen.history.top
        ]
        return [line.rstrip() for line in [*above, *self._screen.display]]

    @property
    def text(self) -> str:
        """The same as one text."""
        return "\n".join(self.lines).rstrip()

    def send(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def wait_for(self, *words: str) -> str:
        """Read until all of these are to be seen; the text."""
        return self.wait_until(lambda: all(each in self.text for each in words), f"{words}")

    def wait_until(self, claim: Callable[[], bool], wanted: str) -> str:
        """Read until it is so."""
        end = time.monotonic() + PATIENCE
        while not claim():
            left = end - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"never came: {wanted}; the screen shows:\n{self.text}")
        return self.text

    def wait_for_end(self) -> int:
        """Read until the child has ended; its exit code."""
        end = time.monotonic() + PATIENCE
        while self._read(end - time.monotonic()):
            pass
        return self.process.wait(10)

    def kill(self) -> None:
        """End the child as a crash would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], max(0.0, seconds))[0]:
            return False
        try:
            piece = os.read(self._master, 65536)
        except OSError:  # the other side is gone
            return False
        self.raw += piece
        self._stream.feed(piece)
        return bool(piece)
