"""Reads the process table from /proc; empty where there is none."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.paths import environment

PROC = Path("/proc")
MARK = "HERMES_EXEC"
"""The variable that all processes of a command of the agent have; its value is the folder of the command's record."""
_ZOMBIE = ("Z", "X")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Identity of a process that survives reuse of its number: `started` is in clock ticks since boot, 0 where
    unknown."""

    pid: int
    started: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A live process; `state` is the letter of proc(5): `T` where it is stopped."""

    pid: int
    parent: int
    group: int
    session: int
    started: int
    state: str = "S"


def this_boot() -> str:
    """The machine's name and, where known, its boot id: the same until it restarts."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    return f"{os.uname().nodename} {boot}"


def row_of(pid: int) -> Row | None:
    """The live process with this number; None for none or a zombie."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    return parse_stat(text)


def parse_stat(text: str) -> Row | None:
    """Parses a line of /proc/PID/stat (proc(5)); None for a zombie or an invalid line."""
    number, _, rest = text.partition(" (")
    values = rest.rpartition(") ")[2].split()
    if len(values) < 20 or values[0] in _ZOMBIE:
        return None
    return Row(
        pid=int(number),
        parent=int(values[1]),
        group=int(values[2]),
        session=int(values[3]),
        started=int(values[19]),
        state=values[0],
    )


def is_alive(who: Identity) -> bool:
    """Whether exactly this process runs: not a later one with its number, and not a zombie."""
    if PROC.joinpath("self").exists():
        row = row_of(who.pid)
        return row is not None and who.started in (0, row.started)
    try:
        os.kill(who.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@cache
def below_agent() -> bool:
    """Whether a command of the agent started this process: it, or a process that it descends from, has the mark of one
    in its environment. Without a wall this is a hint: who scrubs the environment and leaves its parents is not known.
    """
    if MARK in environment():  # where there is no /proc
        return True
    row = row_of(os.getpid())
    while row is not None and not any(each.startswith(f"{MARK}=".encode()) for each in _environment(row.pid)):
        row = row_of(row.parent)
    return row is not None


def family(leader: int, mark: bytes) -> list[Row]:
    """Live processes that belong to `leader`: its group, its session, its descendants, and every process with `mark`
    in its environment (also a daemon that left group, session and parents). Never this process itself. Blocks.

    Where the leader may be long dead and its number reused, pass 0: then only the mark counts.
    """
    rows = {row.pid: row for row in _rows()}
    kin = _kin(rows, leader) if leader > 1 else set()
    return [row for pid, row in rows.items() if pid != os.getpid() and (pid in kin or _carries(pid, mark))]


def group_below(leader: int, generations: int) -> set[int]:
    """The processes of `leader`'s group except the first `generations` of them (the leader, its children, ...).
    Blocks."""
    rows = [row for row in _rows() if row.group == leader]
    spared, last = set[int](), {leader}
    for _ in range(generations):
        spared |= last
        last = {row.pid for row in rows if row.parent in last}
    return {row.pid for row in rows} - spared


def _rows() -> list[Row]:
    try:
        numbers = [int(name) for name in os.listdir(PROC) if name.isdecimal()]  # noqa: PTH208 - many names, no paths
    except OSError:
        return []
    return [row for row in map(row_of, numbers) if row is not None]


def _kin(rows: dict[int, Row], leader: int) -> set[int]:
    found = {pid for pid, row in rows.items() if leader in (pid, row.group, row.session)}
    while True:
        children = {pid for pid, row in rows.items() if row.parent in found} - found
        if not children:
            return found
        found |= children


def _carries(pid: int, mark: bytes) -> bool:
    return mark in _environment(pid)


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []
