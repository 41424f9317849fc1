"""Control groups: limits on the processes and the memory of all commands behind walls together."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from hermes_agent.core.section import short_hash
from hermes_agent.host.process import Child, start_detached

ROOT, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
JOINED = 'echo $$ >"$0" || exit 125; exec "$@"'
NAME = "hermes-wall-"
TRY_SECONDS = 5.0


class ControlGroup:
    """Starts programs under both limits, as far as this machine lets this user set them; `held` names those that
    hold (`pids`, `memory`). All commands of one `home` share a group, for each pair of limits. Creating and closing it
    block; the last process that closes it removes it, once it is empty. A program that is started later makes it again.

    Version 1 takes a thread in, whose children begin there; that is quick. Version 2 takes only whole processes: a
    shell joins and becomes the program.
    """

    def __init__(self, processes: int, memory_mb: int, home: str, root: Path = ROOT, own: Path = OWN) -> None:
        self._limits = {"pids": f"{processes}\n"} | ({"memory": f"{memory_mb << 20}\n"} if memory_mb else {})
        self._name, self._root, self._own = f"{NAME}{short_hash(home)}-{processes}-{memory_mb}", root, own
        self._sign = f"{os.getpid()}.{os.urandom(4).hex()}"
        self._shell = shutil.which("sh") or "/bin/sh"
        self._alone = threading.Lock()
        self._open()

    def _open(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._procs = ""
        self.held: frozenset[str] = frozenset()
        limits, name, root = self._limits, self._name, self._root
        first = {"pids": "pids.max", "memory": "memory.limit_in_bytes"}
        made = [_made(root / kind / name, {first[kind]: text}) for kind, text in limits.items()]
        self._groups = [group for group in made if group is not None]
        if self._groups:
            self._thread = _thread_in(self._groups)
            self.held = frozenset(limits) if self._thread and len(self._groups) == len(limits) else frozenset()
        elif (found := _made_second(root, self._own, name, limits)) and self._joins(str(found / "cgroup.procs")):
            self._groups, self._procs = [found], str(found / "cgroup.procs")
            self.held = frozenset(limits)
        with suppress(OSError):  # A group with a group in it is not removed.
            for group in self._groups:
                (group / self._sign).mkdir()
        self._is_open = True

    def start(self, argv: Sequence[str], start: Callable[[Sequence[str]], Child]) -> Child:
        """Start a program by `start`, in the group."""
        with self._alone:
            if not self._is_open:
                self._open()
        if self._thread is not None:
            return self._thread.submit(start, argv).result()
        return start([self._shell, "-c", JOINED, self._procs, *argv] if self._procs else argv)

    def close(self) -> None:
        """Remove the group, unless a command or another process still uses it."""
        with self._alone:  # The wall of commands and that of servers may share it, and end at once.
            self._is_open = False
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.submit(_join, [group.parent for group in self._groups]).result()
            thread.shutdown()
        for group in self._groups:
            gone = (each for each in group.glob("*.????????") if not Path("/proc", each.stem).exists())
            for each in (group / self._sign, *gone, group):
                with suppress(OSError):
                    each.rmdir()

    def _joins(self, procs: str) -> bool:
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        trial = start_detached([self._shell, "-c", JOINED, procs, "true"], cwd="/", env={}, stdin=None, out=nowhere)
        os.close(nowhere)
        return trial.ends_within(TRY_SECONDS) and trial.code == 0


def _made_second(root: Path, own: Path, name: str, limits: Mapping[str, str]) -> Path | None:
    """A group of version 2, in the nearest group above this process's own that is this user's."""
    path = own.read_text().partition("0::")[2].partition("\n")[0] if own.exists() else ""
    files = {f"{kind}.max": value for kind, value in limits.items()}
    above = [*Path(f"{root}{path}").parents, root]
    return next((made for each in above if each.is_relative_to(root) and (made := _made(each / name, files))), None)


def _made(group: Path, files: Mapping[str, str]) -> Path | None:
    """The group with these limits; None, and nothing left behind, where it cannot be had."""
    with suppress(OSError):
        if (group.parent / "cgroup.procs").exists():
            group.mkdir(exist_ok=True)
            for file, text in files.items():
                (group / file).write_text(text)
            return group
    with suppress(OSError):
        group.rmdir()
    return None


def _join(groups: Sequence[Path]) -> None:
    for group in groups:
        (group / "tasks").write_text("0")


def _thread_in(groups: Sequence[Path]) -> ThreadPoolExecutor | None:
    thread = ThreadPoolExecutor(1, "in a control group", initializer=partial(_join, groups))
    try:
        thread.submit(int).result()
    except BrokenExecutor:
        return None
    return thread
