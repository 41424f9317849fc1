"""The wall of a run: one that says nothing for too long is ended, after its processes have written where they are."""

import asyncio
import codecs
import faulthandler
import gc
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import AsyncGeneratorType, FrameType
from typing import IO, Any

ASK = signal.SIGQUIT
"""Has a process of the tests write its stacks."""
FOLDER = "CHECK_STACKS"
"""The variable that names the folder they are written into, each process's into a file named by its number."""
AWAITED = {"cr": "cr_await", "gi": "gi_yieldfrom", "ag": "ag_await"}
"""How coroutines, generators and asynchronous generators name what they wait for."""
WRITING_SECONDS = 3.0
"""How long they may take to write them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """So many seconds may a run say nothing (`quiet`), and last in all (`whole`)."""

    quiet: float = 600.0  # Above what any one test may take: where none says anything, none has ended.
    whole: float = 5400.0


class StoodStill(Exception):
    """The run was ended; the text is why, and where its processes were."""


def listen() -> None:
    """Have this process write the stacks of its threads and tasks when it is asked; nothing where nobody would ask."""
    if not (folder := os.environ.get(FOLDER)):
        return
    file = Path(folder, str(os.getpid())).open("w", encoding="utf-8")  # noqa: SIM115  open as long as the process
    signal.signal(ASK, lambda *_: write_tasks(file))
    faulthandler.register(ASK, file=file, chain=True)  # Its own part is written also where no Python code runs.


def write_tasks(file: IO[str]) -> None:
    """Write which test runs, and what each task of the running loop waits for, the innermost last."""
    print("Test:", os.environ.get("PYTEST_CURRENT_TEST", "none"), file=file)
    with suppress(RuntimeError):
        for task in asyncio.all_tasks():
            print(task.get_name(), file=file)
            for frame in frames(task):
                print(f"  {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}", file=file)
    file.flush()


def frames(task: asyncio.Task[Any]) -> Iterator[FrameType]:
    """Where a task waits, and what it waits for there."""
    waiting: Any = task.get_coro()
    while waiting is not None:
        kind = next((kind for kind in AWAITED if hasattr(waiting, f"{kind}_frame")), "")
        if kind and (frame := getattr(waiting, f"{kind}_frame")):
            yield frame
        inside = [each for each in gc.get_referents(waiting) if isinstance(each, AsyncGeneratorType)]
        waiting = getattr(waiting, AWAITED[kind]) if kind else next(iter(inside), None)


def said(process: subprocess.Popen[bytes], wall: Wall, stacks: Path) -> Iterator[str]:
    """What the process says, as it comes, until it ends. Raises `StoodStill`, and has then killed its group."""
    assert process.stdout is not None
    pipe, decoder = process.stdout.fileno(), codecs.getincrementaldecoder("utf-8")("replace")
    end = time.monotonic() + wall.whole
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], min(wall.quiet, left))[0]:
            why = f"took more than {wall.whole:g} s" if left < wall.quiet else f"said nothing for {wall.quiet:g} s"
            raise StoodStill(f"\nEnded: it {why}. Where its processes were:\n{ended(process, stacks)}")
        if not (piece := os.read(pipe, 65536)):
            return
        yield decoder.decode(piece)


def ended(process: subprocess.Popen[bytes], stacks: Path) -> str:
    """End a process with its group; where all those were that can say it."""
    for file in stacks.iterdir():
        with suppress(ProcessLookupError):
            os.kill(int(file.name), ASK)
    time.sleep(WRITING_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    texts = {file.name: file.read_text(errors="replace") for file in stacks.iterdir()}
    busiest_last = sorted(texts.items(), key=lambda item: len(item[1]))  # A log may be cut: an idle worker's is short.
    return "\n".join(f"--- process {name}\n{text}" for name, text in busiest_last if text)
