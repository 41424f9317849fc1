"""Jail by bubblewrap: read-only system, private /tmp, /run, process table and network, limited number of processes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from hermes_agent.host.process import Child, start_detached
from hermes_agent.sandbox.jail import CannotJail, Cell, Walls

ROOT = Path("/sys/fs/cgroup")


def processes_at_most(most: int, root: Path = ROOT) -> str:
    """Creates a control group for at most `most` processes; the file to write a process's number to, empty where
    this machine does not allow it. One group per limit, shared by all jailed commands."""
    for controllers in (root / "pids", root):  # version 1, version 2
        group = controllers / f"hermes-jail-{most}"
        with suppress(OSError):
            if not (controllers / "cgroup.procs").exists():
                continue
            group.mkdir(exist_ok=True)
            (group / "pids.max").write_text(f"{most}\n")
            return str(group / "cgroup.procs")
    return ""


def thread_in(procs: str) -> ThreadPoolExecutor | None:
    """A thread in that control group, whose children start in it; None where a group takes only whole processes
    (version 2).

    Moving a process waits for every processor of the machine, 10 ms or more; starting one there does not. Blocks.
    """
    tasks = Path(procs).parent / "tasks"
    if not procs or not tasks.exists():
        return None
    thread = ThreadPoolExecutor(1, "in a control group", initializer=tasks.write_text, initargs=("0",))
    try:
        thread.submit(int).result()
    except BrokenExecutor:
        return None
    return thread


# Where a service may listen, or others leave what is theirs; the jail has its own, bounded ones.
PRIVATE = ("/tmp", "/var/tmp", "/run")
SMALL = 1 << 20
TRY_SECONDS = 5.0
JOINED = 'echo $$ >"$0" || exit 125; exec "$@"'


def limited(processes: int) -> list[str]:
    """Shell arguments that run a program with at most so many processes. The letter of that limit differs between
    bash and dash or busybox; a shell that knows neither runs nothing."""
    bound = f"ulimit -u {processes} 2>/dev/null || ulimit -p {processes} || exit 125"
    return [f'{bound}; exec "$@"', "sh"]


def build(walls: Walls) -> Bubblewrap:
    """Build the jail, after one trial. Raises `CannotJail`."""
    program = shutil.which("bwrap")
    if program is None:
        raise CannotJail("`bwrap` is not installed (apt install bubblewrap).")
    jail = Bubblewrap(program, walls)
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    trial = start_detached([*jail.arguments(), "--", *jail.bounded(["true"])], cwd="/", env={}, stdin=None, out=nowhere)
    os.close(nowhere)
    if not trial.ends_within(TRY_SECONDS) or trial.code != 0:
        trial.signal(9)
        raise CannotJail("`bwrap` is here, but the kernel does not let it make namespaces.")
    return jail


class Bubblewrap:
    """Starts programs in a bubblewrap jail; implements `Jail`. `program` is bwrap's path."""

    name = "bubblewrap"
    layers = 2  # bwrap, and the first process of its process table

    def __init__(self, program: str, walls: Walls) -> None:
        self._program = program
        self._walls = walls
        self._shell = shutil.which("sh") or "/bin/sh"
        self._cgroup = processes_at_most(walls.processes) if os.geteuid() == 0 else ""
        self._thread = thread_in(self._cgroup)

    def launch(self, argv: Sequence[str], *, cell: Cell, env: Mapping[str, str], stdin: int | None, out: int) -> Child:
        """See `Jail`. Where no thread can have its own control group, a shell joins the group and becomes bwrap."""
        line = [*self.arguments(cell), "--", *self.bounded(argv)]
        if self._cgroup and self._thread is None:
            line = [self._shell, "-c", JOINED, self._cgroup, *line]
        start = partial(start_detached, line, cwd=str(cell.folder), env=env, stdin=stdin, out=out)
        if cell.launch is not None:
            start = partial(cell.launch, start)
        return start() if self._thread is None else self._thread.submit(start).result()

    def arguments(self, cell: Cell | None = None) -> list[str]:
        """The command line of bwrap, up to the program."""
        walls = self._walls
        spaces = ["--unshare-pid", "--unshare-ipc"] + (
            [] if walls.network or (cell and cell.launch) else ["--unshare-net"]
        )
        private = [word for path in PRIVATE for word in _tmpfs(path, walls.tmp_mb << 20)]
        # As root the settings of the kernel would be writable: they belong to user 0, whatever its capabilities.
        kernel = ["--proc", "/proc", "--remount-ro", "/proc"]
        devices = ["--dev", "/dev", *_tmpfs("/dev/shm", walls.tmp_mb << 20), "--remount-ro", "/dev"]
        return [
            self._program,
            *spaces,
            *("--cap-drop", "ALL", "--ro-bind", "/", "/"),
            *kernel,
            *devices,
            *private,
            *self._mounts(cell),
        ]

    def _mounts(self, cell: Cell | None) -> Iterator[str]:
        """Parents before what is in them; where a path is both, it is hidden."""
        walls = self._walls
        open_ = [*walls.writable, *([cell.workspace] if cell else [])]
        wanted = {os.path.realpath(path): "--ro-bind" for path in walls.readable}
        wanted |= {os.path.realpath(path): "--bind" for path in open_}
        wanted |= {os.path.realpath(path): "hide" for path in walls.hidden}
        for path in sorted(wanted, key=lambda path: path.count("/")):
            if wanted[path] == "hide":
                yield from _hide(path)
            elif Path(path).exists():
                yield from (wanted[path], path, path)
        if cell is not None:
            yield from _record(cell, walls)
        if walls.network:
            names = os.path.realpath("/etc/resolv.conf")
            yield from ("--ro-bind-try", names, names)

    def bounded(self, argv: Sequence[str]) -> list[str]:
        """The program with a limit on its processes. In its own user namespace that counts only those of the jail;
        root has no such limit."""
        if os.geteuid() == 0:
            return list(argv)
        return [self._shell, "-c", *limited(self._walls.processes), *argv]


def _tmpfs(path: str, size: int) -> list[str]:
    return ["--perms", "1777", "--size", str(size), "--tmpfs", path] if Path(path).is_dir() else []


def _hide(path: str) -> Iterator[str]:
    if Path(path).is_dir():
        yield from ("--perms", "0755", "--size", str(SMALL), "--tmpfs", path)
    elif Path(path).exists():
        yield from ("--ro-bind", "/dev/null", path)


def _record(cell: Cell, walls: Walls) -> Iterator[str]:
    """The command's own record, which is among what is hidden: files that can be written and not replaced."""
    for name in cell.files:
        yield from ("--bind", str(cell.folder / name), str(cell.folder / name))
    long = cell.folder / "command"
    for path in (cell.kept, long, *cell.borrows(walls)):
        if path is not None and path.exists():
            yield from ("--ro-bind", str(path), str(path))
