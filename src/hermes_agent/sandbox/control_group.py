"""Control groups: limits on the processes and the memory of all commands behind walls together."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from hermes_agent.host.process import Child, start_detached

ROOT, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
JOINED = 'echo $$ >"$0" || exit 125; exec "$@"'
TRY_SECONDS = 5.0


class ControlGroup:
    """Starts programs under both limits, as far as this machine lets this user set them; `held` names those that
    hold (`pids`, `memory`). One group for each pair of limits, shared by all commands. Creating it blocks.

    Version 1 takes a thread in, whose children begin there; that is quick. Version 2 takes only whole processes: a
    shell joins and becomes the program.
    """

    def __init__(self, processes: int, memory_mb: int, root: Path = ROOT, own: Path = OWN) -> None:
        limits = {"pids": f"{processes}\n"} | ({"memory": f"{memory_mb << 20}\n"} if memory_mb else {})
        name = f"hermes-wall-{processes}-{memory_mb}"
        self._shell = shutil.which("sh") or "/bin/sh"
        self._thread: ThreadPoolExecutor | None = None
        self._procs = ""
        self.held: frozenset[str] = frozenset()
        first = {"pids": "pids.max", "memory": "memory.limit_in_bytes"}
        made = [_made(root / kind / name, {first[kind]: text}) for kind, text in limits.items()]
        groups = [group for group in made if group is not None]
        if groups:
            self._thread = _thread_in(groups)
            self.held = frozenset(limits) if self._thread and len(groups) == len(limits) else frozenset()
        elif (found := _made_second(root, own, name, limits)) and self._joins(str(found / "cgroup.procs")):
            self._procs = str(found / "cgroup.procs")
            self.held = frozenset(limits)

    def start(self, argv: Sequence[str], start: Callable[[Sequence[str]], Child]) -> Child:
        """Start a program by `start`, in the group."""
        if self._thread is not None:
            return self._thread.submit(start, argv).result()
        return start([self._shell, "-c", JOINED, self._procs, *argv] if self._procs else argv)

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


def _thread_in(groups: Sequence[Path]) -> ThreadPoolExecutor | None:
    def join() -> None:
        for group in groups:
            (group / "tasks").write_text("0")

    thread = ThreadPoolExecutor(1, "in a control group", initializer=join)
    try:
        thread.submit(int).result()
    except BrokenExecutor:
        return None
    return thread
