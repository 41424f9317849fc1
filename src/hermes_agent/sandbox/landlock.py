"""Jail by the kernel's Landlock, for machines without bubblewrap: file access rules, no new privileges, seccomp.

Weaker than namespaces: the process table and names of files are visible, and /tmp is a folder with another name. Where
the kernel hands no system calls over, no socket with a path can be made, and metadata is not held (`metadata.py`).
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

from hermes_agent.host.process import Child, start_detached
from hermes_agent.sandbox.control_group import ControlGroup
from hermes_agent.sandbox.jail import CannotJail, Cell, limits, unheld
from hermes_agent.sandbox.metadata import metadata
from hermes_agent.sandbox.seccomp import checked, libc, load, program
from hermes_agent.sandbox.walls import SYSTEM_CREDENTIALS, Access, Walls, mounted

# Numbers of system calls and bits: linux/landlock.h, landlock(7); the calls have the same number everywhere.
CREATE, ADD, RESTRICT = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
READ = EXECUTE | READ_FILE | READ_DIR
EVERYTHING = (1 << 16) - 1
# Bits that came with later versions of the interface, and that version.
SINCE = {REFER: 2, TRUNCATE: 3, IOCTL_DEV: 5}
SCOPES, SCOPES_SINCE = 0b11, 6  # abstract sockets and signals stay inside
RULE_PATH_BENEATH = 1
CONNECT_TCP, TCP_SINCE = 1 << 1, 4
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
SET_NO_NEW_PRIVS, CAPBSET_DROP = 38, 24  # prctl(2)
LAST_CAPABILITY = 63


def build(walls: Walls) -> Landlock:
    """Build the jail. Raises `CannotJail`."""
    version = _version()
    if version < 1:
        raise CannotJail("The kernel has no Landlock.")
    if not walls.network and not program():
        raise CannotJail("Landlock alone cannot close the network on this kind of machine.")
    return Landlock(walls, version)


class Landlock:
    """Starts programs under the kernel's Landlock rules; implements `Jail`. `version` is that of the kernel's
    interface."""

    name = "landlock"
    layers = 0

    def __init__(self, walls: Walls, version: int) -> None:
        self.walls = walls
        self._handled = _known(EVERYTHING, version)
        self._system = _SystemRules(walls)
        self._scoped = SCOPES if version >= SCOPES_SINCE else 0
        self._filter = program(sockets="inet" if walls.network else "none", alone=True)
        self._watched_filter = program(alone=True)
        self._group = ControlGroup(walls.processes, walls.memory_mb, walls.workspaces)
        self.limits = limits(walls, self._group.held | {"pids"})  # it would count all processes of this user
        self.unheld = unheld(walls, self._group.held)

    def launch(self, argv: Sequence[str], *, cell: Cell, env: Mapping[str, str], stdin: int | None, out: int) -> Child:
        """See `Jail`. A thread restricts itself irrevocably and then starts the program."""
        home = cell.prepare(self.walls, links_all=True)
        shown = self.walls.shown(*cell.works_in)
        person = self.walls.person
        place = person if person and shown.get(os.path.realpath(person)) == "write" else str(home)
        env = cell.variables(self.walls, env, home=place, temporary=str(cell.session / "tmp"))

        own = self._own(cell)

        @lru_cache(64)  # programs change several things of one file
        def may_change(path: str) -> bool:
            is_own = any(path == each or path.startswith(f"{each}/") for each in own)
            return is_own or self.walls.access(path, *cell.works_in) == "write"

        def start(argv: Sequence[str]) -> Child:
            begin = partial(start_detached, argv, cwd="/", env=env, stdin=stdin, out=out, passed=cell.passed)
            walled = partial(_walled, partial(self._enter, cell, shown), begin)
            return cell.launch((*cell.connections, metadata(may_change)), walled)

        return self._group.start(argv, start)

    def close(self) -> None:
        """See `Jail`."""
        self._group.close()

    def _enter(self, cell: Cell, shown: Mapping[str, Access]) -> None:
        """What the thread that starts the program takes on, and so everything in the wall."""
        for capability in range(LAST_CAPABILITY if os.geteuid() == 0 else 0):
            libc().prctl(CAPBSET_DROP, capability, 0, 0, 0)  # fails for numbers that this kernel does not know
        _restrict(self._system.ruleset())
        _restrict_to(dict(self._rules(cell, shown)), self._handled, self._scoped)
        if code := self._watched_filter if cell.connections else self._filter:
            load(code)

    def _rules(self, cell: Cell, shown: Mapping[str, Access]) -> Iterator[tuple[str, int]]:
        """What is allowed, by path; a later rule for the same path stands in place of the earlier."""
        listed = {path: shown[path] for path in shown if path not in self._system.closed}
        yield from _shown_rules(listed, mounted(self.walls))
        yield "/proc", READ
        for device in DEVICES:
            yield os.path.realpath(f"/dev/{device}"), READ | WRITE_FILE | IOCTL_DEV
        yield from dict.fromkeys(self._own(cell), EVERYTHING).items()
        yield from _record_rules(cell, self.walls).items()

    def _own(self, cell: Cell) -> list[str]:
        """The folders of the session's own."""
        caches = [cell.caches(self.walls)] if self.walls.caches else []
        return [os.path.realpath(path) for path in (f"{cell.session}/tmp", f"{cell.session}/home", *caches)]


class Thin:
    """The thin wall of a command that a person let run outside: `walls` show everything but the home of Hermes.
    Implements `Jail`; without Landlock it holds nothing.

    Landlock cannot take back what it allowed, so nothing new can be created directly in the folders that hold a closed
    one (the person's home, mostly), and `sudo` gains no rights: a person runs such a command by hand.
    """

    name = ""
    layers = 0
    limits = ""
    unheld = (0, 0)

    def __init__(self, walls: Walls) -> None:
        self.walls = walls
        self._handled = _known(EVERYTHING & ~(EXECUTE | READ_DIR | IOCTL_DEV), max(_version(), 0))

    def launch(self, argv: Sequence[str], *, cell: Cell, env: Mapping[str, str], stdin: int | None, out: int) -> Child:
        """See `Jail`."""
        begin = partial(start_detached, argv, cwd="/", env=env, stdin=stdin, out=out, passed=cell.passed)
        return cell.launch((), partial(_walled, partial(self._enter, cell), begin)) if _version() > 0 else begin()

    def close(self) -> None:
        """Nothing is held."""

    def _enter(self, cell: Cell) -> None:
        rules = dict(_shown_rules(self.walls.shown(cell.workspace), mounted(self.walls)))
        _restrict_to(rules | _record_rules(cell, self.walls), self._handled, 0)


def _walled(enter: Callable[[], None], begin: Callable[[], Child]) -> Child:
    enter()
    return begin()


def _record_rules(cell: Cell, walls: Walls) -> dict[str, int]:
    """The command's own record, which is in a closed folder."""
    own = {os.path.realpath(cell.folder / name): READ_FILE | WRITE_FILE | TRUNCATE for name in cell.files}
    read = [record for record in (cell.kept, cell.folder / "command", *cell.borrows(walls)) if record is not None]
    return own | {os.path.realpath(record): READ_FILE for record in read}


def _shown_rules(shown: Mapping[str, Access], mirrors: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Each shown path, or where something in it is closed to us too, the parts around that. `mirrors` are mounts of
    what is closed: a folder on the way to one may be a part by another name, and a rule is for all its names."""
    ways = {_identity(str(parent)) for path in mirrors for parent in Path(path).parents}
    closed = [path for path, access in shown.items() if access == "none" and _is_open(path)]
    weaker = {"read": closed, "write": [*closed, *(path for path, access in shown.items() if access == "read")]}
    for path, access in shown.items():
        if access != "none":
            parts = (part for part in _seen(path, weaker[access]) if not ways or _identity(part) not in ways)
            yield from dict.fromkeys(parts, READ if access == "read" else EVERYTHING).items()


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - some hundreds, before a command
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _is_open(path: str) -> bool:
    """Whether this user could read it: what the system itself refuses needs no rule."""
    return os.access(path, os.R_OK) or os.access(path, os.X_OK)


def restrict_tcp() -> None:
    """Let this thread, and whatever it starts, make no TCP connection, where the kernel can: a second lock. What is
    connected for it is not subject to it."""
    if _version() >= TCP_SINCE:
        _restrict_to({}, 0, 0, CONNECT_TCP)


def _restrict_to(rules: Mapping[str, int], handled: int, scoped: int, tcp: int = 0) -> None:
    """Restrict this thread, and whatever it starts, to these rules."""
    ruleset = _ruleset(rules, handled, scoped, tcp)
    try:
        _restrict(ruleset)
    finally:
        os.close(ruleset)


def _restrict(ruleset: int) -> None:
    checked(libc().prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    checked(libc().syscall(RESTRICT, ruleset, 0))


def _ruleset(rules: Mapping[str, int], handled: int, scoped: int = 0, tcp: int = 0) -> int:
    attributes = struct.pack("=QQQ", handled, tcp, scoped)[: 24 if scoped else 16 if tcp else 8]
    ruleset = checked(libc().syscall(CREATE, attributes, len(attributes), 0))
    for path, access in rules.items():
        _allow(ruleset, path, access & handled)
    return ruleset


class _SystemRules:
    """The rules around what is closed in the system (`/etc/shadow`), which are many and the same for every command:
    they are made once, and again when a folder on the way changed."""

    def __init__(self, walls: Walls) -> None:
        self.closed = frozenset(SYSTEM_CREDENTIALS) & set(walls.closed)
        self._around = sorted({str(parent) for path in self.closed for parent in Path(path).parents})
        self._made: tuple[list[int], int] = [], -1

    def ruleset(self) -> int:
        """What may be read: all but what is closed. Blocks, the first time for some milliseconds."""
        stamps = [os.stat(folder).st_mtime_ns if os.path.isdir(folder) else 0 for folder in self._around]  # noqa: PTH112, PTH116 - quicker as text
        if self._made[0] != stamps or self._made[1] < 0:
            rules = dict.fromkeys(_seen("/", filter(_is_open, self.closed)), READ_FILE)
            self._made = stamps, _ruleset(rules, READ_FILE, 0)
        return self._made[1]


def _known(rights: int, version: int) -> int:
    """Those rights that this version of the interface knows."""
    return rights & ~sum(bit for bit, since in SINCE.items() if version < since)


def _version() -> int:
    """Version of the kernel's interface; 0 or less: there is none."""
    version: int = libc().syscall(CREATE, None, 0, 1)
    return version


def _seen(folder: str, hidden: Iterable[str]) -> Iterator[str]:
    """The fewest paths that hold everything but what is hidden."""
    below = f"{folder.rstrip('/')}/"
    inside = [path for path in hidden if path == folder or path.startswith(below)]
    if not inside:
        yield folder
    elif folder not in inside:
        try:
            children = sorted(entry.path for entry in os.scandir(folder) if not entry.is_symlink())
        except OSError:
            return
        for child in children:
            yield from _seen(child, inside)


def _allow(ruleset: int, path: str, access: int) -> None:
    """Allow this below `path`, a real one. One that is not there needs no rule, and one that leads elsewhere since then
    gets none."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if os.readlink(f"/proc/self/fd/{handle}") != path:  # noqa: PTH115 - many, as text
            return
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            access &= OF_A_FILE
        checked(libc().syscall(ADD, ruleset, RULE_PATH_BENEATH, struct.pack("=Qi", access, handle), 0))
    finally:
        os.close(handle)
