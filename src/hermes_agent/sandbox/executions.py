"""Records of commands on this machine, each a folder of small files; starts time limits.

exec/<group>/<name>/     whoever makes it may start the command
    meta.json            the command and where it runs
    command              its text, where that is long
    pid                  made by the shell when it begins, or by its jail: its line of /proc/PID/stat
    out                  both outputs, whole
    in                   a pipe to its input (background only)
    exit                 empty before it begins, a newline while it runs in a jail, then the exit code and a newline (in
                         a jail with processes of its own: how many)
    env                  what it leaves to the kept shell: the directory in a comment, then the exported variables
    network              whom it talked to, a line each: `traffic.py`
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
from errno import EEXIST
from fcntl import LOCK_EX, LOCK_NB, flock  # noqa: TID251 - whoever finds it locked goes on without
from functools import cache
from math import inf
from pathlib import Path
from time import monotonic

import msgspec

from hermes_agent.core.effects import Location
from hermes_agent.host.process import start_detached
from hermes_agent.host.process_table import MARK, Identity, family, parse_stat
from hermes_agent.sandbox.place import Command, PlaceFailed

EXEC_ID = re.compile(r"[\w:-][\w.:-]{0,119}/[\w:-][\w.:-]{0,119}", re.ASCII)
ENDED = re.compile(r"(\d{1,3})(?: (\d{1,9}))?\n", re.ASCII)
KEPT = ".kept"
WORD = ".word"
"""Beside all records: the name of their store, which is another one when records were removed."""
MOST_TYPED = 10_000  # it is quoted twice, and one argument of a program may have 128 kB
NOBODY = Identity(pid=0)
VOID = b"0\n"


class Meta(msgspec.Struct, frozen=True):
    """Content of `meta.json`. `boot` identifies the boot of the machine, after which process numbers start anew.
    `layers` counts the jail's processes between the one in `pid` and the shell. `watched`: its
    connections are noted."""

    command: Command
    cwd: str
    boot: str
    layers: int = 0
    watched: bool = False


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
    """The process of such a line; without /proc only its number."""
    row = parse_stat(written)
    if row is None:
        return Identity(pid=int(written)) if written.strip().isdecimal() else NOBODY
    return Identity(pid=row.pid, started=row.started)


def noted_end(written: str) -> tuple[int | None, int | None]:
    """The first line of a record's `exit`: the exit code, and the number of processes in a process table of its own;
    None for what is missing. A jailed command may have written anything there."""
    found = ENDED.match(written)
    if found is None:
        return None, None
    return int(found[1]), int(found[2]) if found[2] else None


def is_beginning(folder: Path) -> bool:
    """Whether the id is claimed but its shell has not reported yet that it runs."""
    return folder.is_dir() and not read_text(folder / "pid")


def start_note(folder: Path) -> int:
    """Create the `pid` of a jailed command before it starts, for its starter to fill. Locked until the starter has
    done so or died, and the program that it started has begun. Raises `OSError`, also where it was made void."""
    handle = os.open(folder / "pid", os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        flock(handle, LOCK_EX | LOCK_NB)
        if os.fstat(handle).st_size:
            raise FileExistsError(EEXIST, "it was made void")
    except OSError:
        os.close(handle)
        raise
    return handle


def void(folder: Path) -> bool:
    """Make sure that a command that never began never will; True on success, for one caller alone. Blocks.

    It never began where its shell has not made `pid`; in a jail, where whoever starts it died before it did: nobody
    holds the file, no process carries the mark, and no shell wrote that it begins.
    """
    handle = os.open(folder / "pid", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        flock(handle, LOCK_EX | LOCK_NB)
        if os.fstat(handle).st_size or read_text(folder / "exit") or runs(folder) != NOBODY:
            return False
        os.write(handle, VOID)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def make_input(folder: Path) -> int:
    """A pipe of which the command holds both ends, so that it never sees an end of input."""
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


def runs(folder: Path) -> Identity:
    """Who runs the command of a record. Where its starter died between a jail's start and the note of who that is, the
    first session that carries its mark. Blocks."""
    if written := read_text(folder / "pid"):
        return identity_in(written)
    leaders = [row for row in family(0, f"{MARK}={folder}".encode()) if row.pid == row.session]
    first = min(leaders, key=lambda row: row.started, default=None)
    return Identity(pid=first.pid, started=first.started) if first else NOBODY


def read_text(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return ""


@cache
def this_boot() -> str:
    return read_text(Path("/proc/sys/kernel/random/boot_id")).strip()


def location_of(kind: str, records: Path) -> Location:
    """Location of the records of this kind of place in this folder."""
    boot = f"{this_boot()}.{word_in(Path(f'/dev/shm/hermes-{os.geteuid()}'))}"
    records.mkdir(parents=True, exist_ok=True, mode=0o700)
    word = word_in(records / WORD) or os.urandom(8).hex()  # without a store that has a name, nothing is known
    return Location(machine=os.uname().nodename, place=f"{kind}:{records}:{word}", boot=boot)


def word_in(path: Path) -> str:
    """The random id in a file of ours, created where missing; empty where it can be neither read nor created."""
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
    """Delete records and change the location's id, so that a missing record proves nothing about earlier commands."""
    if folders:
        (records / WORD).unlink(missing_ok=True)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


FILES = ("meta.json", "out", "exit", "env")
"""Empty ones stand for none."""


def claim(record: Path) -> None:
    """Make the record of a command: whoever does may start it. Blocks. Raises `FileExistsError` where there is one."""
    try:
        record.mkdir(mode=0o700)
    except FileNotFoundError:
        record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        record.mkdir(mode=0o700)
    for name in FILES:
        os.close(os.open(record / name, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


ENFORCER = Path(__file__).with_name("enforcer.py")


class TimeLimits:
    """Limits of commands that nothing else holds, time above all; starts the enforcer process with the first one. It
    ends after this process and the commands."""

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python
        self._pipe: int | None = None
        self._alone = threading.Lock()

    def hold(self, record: Path, seconds: float, most: tuple[int, int, int] = (0, 0, 0)) -> None:
        """End the command of this record in so many seconds (0: never), with everything that it started; sooner where
        that is more processes or megabytes than `most`, or more megabytes in the folders of its session (0: any
        number). Blocks, the first time for a millisecond or two. Raises `OSError`."""
        at = monotonic() + seconds if seconds else inf
        line = f"{at} {os.fsencode(record).hex()} {' '.join(map(str, most))}\n".encode()
        with self._alone:
            if not self._parse(line):
                self._drop()  # it was killed, or stands still
                self._pipe = _started(self._python)
                os.write(self._pipe, line)

    def close(self) -> None:
        """Let the enforcer exit once the commands have ended."""
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
