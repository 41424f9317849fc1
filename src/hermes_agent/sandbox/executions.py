"""The record of one command on this machine: a folder of small files.

exec/<group>/<name>/     moved there atomically: whoever does may start the command
    meta.json            the command and where it runs
    command              its text, where that is long
    pid                  made by the shell when it begins, or by its jail: its line of /proc/PID/stat
    out                  both outputs, whole
    in                   a pipe to its input (background only)
    exit                 the exit code and a newline, when it has ended (in a jail with processes of its own: how many)
    env                  what it leaves to the kept shell: the directory in a comment, then the exported variables
    listed               there for commands that `list` names
exec/<group>/.kept       the kept shell: `env` of the last command whose end was seen
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from errno import EEXIST, ENOTEMPTY
from functools import cache
from pathlib import Path
from time import monotonic

import msgspec

from hermes_agent.core.effects import Location
from hermes_agent.host.process import start_detached
from hermes_agent.host.process_table import Identity, parse_stat
from hermes_agent.sandbox.place import Command, PlaceFailed

EXEC_ID = re.compile(r"[\w:-][\w.:-]{0,119}/[\w:-][\w.:-]{0,119}", re.ASCII)
ENDED = re.compile(r"(\d{1,3})(?: (\d{1,9}))?\n", re.ASCII)
KEPT = ".kept"
WORD = ".word"
"""Beside all records: the name of their store, which is another one when records were removed."""
MOST_TYPED = 10_000  # it is quoted twice, and one argument of a program may have 128 kB
NOBODY = Identity(pid=0)


class Meta(msgspec.Struct, frozen=True):
    """What `meta.json` holds; `boot` tells this boot of the machine from another, where process numbers begin anew.
    `layers` counts the processes of a jail between the one in `pid` and the shell."""

    command: Command
    cwd: str
    boot: str
    layers: int = 0


def check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PlaceFailed("The command holds half of a surrogate pair, which no shell can read.") from error
    if "\0" in text:
        raise PlaceFailed("The command holds a NUL character, which no shell can read.")


def check_length(command: Command) -> None:
    if command.pty and len(command.text) > MOST_TYPED:
        raise PlaceFailed(f"A command in a terminal may have {MOST_TYPED:,} characters: put it into a file.")


def identity_in(written: str) -> Identity:
    """Who wrote this line; a machine without /proc gives the number alone."""
    row = parse_stat(written)
    if row is None:
        return Identity(pid=int(written)) if written.strip().isdecimal() else NOBODY
    return Identity(pid=row.pid, started=row.started)


def noted_end(written: str) -> tuple[int | None, int | None]:
    """What the first line of a record's `exit` says: the code, and how many processes there were in a table of its own;
    None for what it does not say. The rest is of a longer line below. A jailed command may have written anything."""
    found = ENDED.match(written)
    if found is None:
        return None, None
    return int(found[1]), int(found[2]) if found[2] else None


def is_beginning(folder: Path) -> bool:
    """Whether the id is claimed but its shell has not yet said that it runs, or is about to say it."""
    return folder.is_dir() and not read_text(folder / "pid")


def void(folder: Path) -> bool:
    """Make sure that a command whose shell never began never will: True where that is so."""
    try:
        os.close(os.open(folder / "pid", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True


def make_input(folder: Path) -> int:
    """A pipe whose both ends the command holds: it never sees an end of input while it waits for what is written."""
    os.mkfifo(folder / "in", 0o600)
    return os.open(folder / "in", os.O_RDWR | os.O_CLOEXEC)


def send(pipe: Path, data: bytes) -> None:
    try:
        handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            sent = os.write(handle, data)
        finally:
            os.close(handle)
    except BlockingIOError as error:
        raise PlaceFailed("It does not read its input; nothing was sent.") from error
    except OSError as error:
        raise PlaceFailed("It takes no input any more.") from error
    if sent < len(data):
        raise PlaceFailed(f"It stopped reading its input: only {sent} of {len(data)} bytes were sent.")


def read_part(path: Path, start: int, limit: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(limit)


def cover_part(path: Path, start: int, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.pwrite(handle, data, start)
    finally:
        os.close(handle)


def read_text(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return ""


@cache
def this_boot() -> str:
    return read_text(Path("/proc/sys/kernel/random/boot_id")).strip()


def location_of(kind: str, records: Path) -> Location:
    """Where commands of this kind of place are recorded, in this folder of this machine."""
    boot = f"{this_boot()}.{word_in(Path(f'/dev/shm/hermes-{os.geteuid()}'))}"
    records.mkdir(parents=True, exist_ok=True, mode=0o700)
    word = word_in(records / WORD) or os.urandom(8).hex()  # without a store that has a name, nothing is known
    return Location(machine=os.uname().nodename, place=f"{kind}:{records}:{word}", boot=boot)


def word_in(path: Path) -> str:
    """The word in a file of ours, made where there is none; empty where it can be neither read nor made."""
    with suppress(OSError):
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        os.write(handle, os.urandom(8).hex().encode())
        os.close(handle)
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(handle)
            is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
            return os.read(handle, 64).decode("ascii", "replace") if is_ours else ""
        finally:
            os.close(handle)
    return ""


def forget(records: Path, folders: Sequence[Path]) -> None:
    """Remove records: from then on a missing one says nothing about commands of before."""
    if folders:
        (records / WORD).unlink(missing_ok=True)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


FILES = ("meta.json", "out", "exit", "env")
"""Empty ones stand for none."""
PREFIX = ".spare."


class PreparedShells:
    """Makes records below `folder`, and keeps one of them ready."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready: list[Path] = []

    def make(self) -> None:
        """Have one ready. Blocks; a failure leaves none, and a record is then made as it comes."""
        with suppress(OSError):
            if not self._ready:
                self._ready.append(self._made())

    def claim(self, record: Path) -> None:
        """Put a record there: whoever does may start the command. Blocks for microseconds where one is ready. Raises
        `FileExistsError` where there is one."""
        made = self._taken() or self._made()
        try:
            self._move(made, record)
        except OSError as error:
            self._ready.append(made)
            if error.errno in (EEXIST, ENOTEMPTY):
                raise FileExistsError(error.errno, error.strerror) from error
            raise

    def drop(self) -> None:
        """Remove what is ready, and what programs that were killed left. Blocks."""
        while made := self._taken():
            shutil.rmtree(made, ignore_errors=True)
        with suppress(OSError):  # Whoever comes next removes it.
            for left in self._folder.glob(f"{PREFIX}*"):
                if not Path("/proc", left.name.removeprefix(PREFIX).partition(".")[0]).exists():
                    shutil.rmtree(left, ignore_errors=True)

    def _taken(self) -> Path | None:
        with suppress(IndexError):  # several threads may ask for the last one
            return self._ready.pop()
        return None

    def _move(self, made: Path, record: Path) -> None:
        """A folder takes the place of an empty one too; no record is ever empty."""
        try:
            made.rename(record)
        except FileNotFoundError:
            record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            (made if made.is_dir() else self._made()).rename(record)

    def _made(self) -> Path:
        folder = self._folder / f"{PREFIX}{os.getpid()}.{os.urandom(4).hex()}"
        folder.mkdir(parents=True, mode=0o700)
        for name in FILES:
            os.close(os.open(folder / name, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        return folder


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
