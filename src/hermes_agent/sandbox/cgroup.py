"""A bound on the number of processes that also holds for root, whom no ordinary limit binds."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def processes_at_most(most: int, root: Path = ROOT) -> str:
    """The file to write a process's number to, so that it and its children together are at most `most`; empty where
    this machine does not let us. One control group per bound, shared by all jailed commands."""
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
    """A thread in that group, whose children begin there; None where a group takes whole processes alone (version 2).

    A process that moves waits for every processor of the machine, 10 ms or more; one that begins there does not.
    Blocks.
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
