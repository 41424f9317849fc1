"""Starts, watches and ends child processes; the other modules start their programs through it."""

from __future__ import annotations

import asyncio
import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.late import late
from hermes_agent.host.process_table import PROC, Identity, family, group_below, is_alive
from hermes_agent.host.tasks import spawn

GRACE = 0.8  # seconds between SIGTERM and SIGKILL; with the rest, a stop stays under two
_LAST_RESORT = 0.9  # seconds in which SIGKILL is sent again to whoever was forked meanwhile
_GLANCE = 0.02
_CHUNK = 1 << 16
MOMENT = 0.2
"""Seconds after a program's end in which its last words arrive."""
WORK_SECONDS = 20
WAIT_SECONDS = 300.0
MEMORY = 1 << 30
"""What a function that is called apart may take: seconds of work, seconds with all that waits, and bytes."""
_SOURCE = Path(__file__).resolve().parents[2]
_APART = "import sys; sys.path.insert(0, sys.argv[1]); from hermes_agent.host.process import answer; answer()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Result of a finished process: exit code and output. `cut`: it was ended because its output passed the limit."""

    code: int
    out: bytes
    err: bytes
    cut: bool = False


class Child:
    """A process that this program watches: its own child, or one that an earlier program started."""

    def __init__(self, identity: Identity, popen: _Detached | None = None) -> None:
        self.identity = identity
        self._popen = popen

    @property
    def is_ours(self) -> bool:
        """Whether this program started it."""
        return self._popen is not None

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        if self._popen is not None:
            return self._popen.poll() is None
        return is_alive(self.identity)

    @property
    def code(self) -> int | None:
        """The exit code as a shell counts it (128 + n for signal n); None while it runs, and for a process of
        others."""
        code = self._popen.poll() if self._popen is not None else None
        return code if code is None or code >= 0 else 128 - code

    async def exited(self) -> None:
        """Wait for its end, through the kernel where possible, otherwise by polling 20 times a second."""
        try:
            watch = os.pidfd_open(self.identity.pid)
        except ProcessLookupError:
            return
        except (OSError, AttributeError):
            while self.is_alive:  # noqa: ASYNC110 - this system tells of no event
                await asyncio.sleep(0.05)
            return
        try:
            if self.is_alive:
                await _readable(watch)
        finally:
            os.close(watch)
        if self._popen is not None:
            self._popen.poll()  # collects the zombie

    async def end(self, mark: str) -> bool:
        """End the process, its group and session, its descendants, and every process with `mark` (`NAME=value`) in
        its environment: SIGTERM, after `GRACE` seconds SIGKILL. True when nothing is left; takes at most 2 s.
        Where it has ended already, only processes with the mark are ended: its number may have been reused."""
        family_of = self.identity.pid if self.is_alive else 0
        return await _end(family_of, mark.encode())

    def ends_within(self, seconds: float) -> bool:
        """Whether it has ended, waiting at most this long for our own child to. Blocks: for use in a thread."""
        if self._popen is None:
            return not self.is_alive
        try:
            watch = os.pidfd_open(self.identity.pid)
        except (OSError, AttributeError):
            return not self.is_alive
        try:
            poll = select.poll()
            poll.register(watch, select.POLLIN)
            poll.poll(seconds * 1000)
        finally:
            os.close(watch)
        return not self.is_alive

    def signal(self, number: int, *, spared: int = 0) -> None:
        """Send a signal to the process group, except its first `spared` generations; a group that is gone is no
        error. With `spared` it scans all processes: call it in a thread then."""
        if not spared:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.identity.pid, number)
        for pid in group_below(self.identity.pid, spared) if spared else ():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    @property
    def has_group(self) -> bool:
        """Whether a process of its group still runs."""
        try:
            os.killpg(self.identity.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


class _Detached(subprocess.Popen[bytes]):
    """A child that may outlive this program, without Python's warning when dropped."""

    def __del__(self) -> None:  # the base class warns that the process still runs
        pass


def start_detached(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdin: int | None, out: int, passed: Sequence[int] = ()
) -> Child:
    """Start a process in its own session, which outlives this program and inherits the descriptors in `passed`. `out`
    receives stdout and stderr. Blocks for about a millisecond: call it in a thread. Raises `OSError`."""
    popen = _Detached(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        stdout=out,
        stderr=out,
        start_new_session=True,
        pass_fds=passed,
    )
    return Child(Identity(pid=popen.pid), popen)  # nobody else has the number until this one is collected


def become(argv: Sequence[str], *, env: Mapping[str, str]) -> NoReturn:
    """Replace this process by another program (exec). Raises `OSError`."""
    os.execve(argv[0], list(argv), dict(env))


async def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    data: bytes | None = None,
    cwd: str = "/",
    seconds: float = 30.0,
    most: int = 16 << 20,
) -> Finished:
    """Run a program, which reads `data`, to its end; its output. Past `most` bytes of it the program is ended: `cut`.
    After `seconds`, or when the caller is cancelled, its whole group is ended; the first raises `TimeoutError`. Raises
    `OSError` where it cannot be started."""
    running = await open_piped(argv, env=env, data=data, cwd=cwd, most_errors=most)
    try:
        async with asyncio.timeout(seconds):
            out, cut = await running.first(most)
            return Finished(code=await running.code(), out=out, err=await running.errors(), cut=cut)
    finally:
        await running.close()


class CapturedProcess:
    """A process whose output is streamed while its input is fed. It does not use asyncio's subprocesses: after a
    cancelled start those wait for unconnected pipes, and for processes that inherited them."""

    def __init__(self, popen: subprocess.Popen[bytes], most_errors: int) -> None:
        self._popen = popen
        self._unused = [pipe for pipe in (popen.stdout, popen.stderr, popen.stdin) if pipe is not None]
        self._reading: list[asyncio.BaseTransport] = []
        self._feeding: asyncio.WriteTransport | None = None
        self._out, self._err = asyncio.StreamReader(), asyncio.StreamReader()
        self._said = bytearray()
        self._errors = spawn(_keep(self._said, self._err, most_errors), name="errors of a program")
        self._over = asyncio.Event()
        try:
            watch = os.pidfd_open(popen.pid)
        except (OSError, AttributeError):
            self._poll()
        else:
            asyncio.get_running_loop().add_reader(watch, self._collect, watch)

    async def connect(self, data: bytes | None) -> None:
        """Start reading its output and feeding its input."""
        loop = asyncio.get_running_loop()
        for stream in (self._out, self._err):
            protocol = partial(asyncio.StreamReaderProtocol, stream)
            self._reading.append((await loop.connect_read_pipe(protocol, self._unused.pop(0)))[0])
        if data is not None:
            self._feeding, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, self._unused.pop(0))
            self._feeding.write(data)
            self._feeding.close()  # Once it is taken. Who does not take it says why by how it ends.

    async def line(self) -> bytes:
        """The next line with its newline; the last one may have none."""
        return await self._out.readline()

    async def rest(self) -> bytes:
        """The remaining output."""
        return await self._out.read()

    async def first(self, most: int) -> tuple[bytes, bool]:
        """The whole output, or its first `most` bytes, and whether it was longer; then the process is ended."""
        out = bytearray()
        while len(out) < most and (chunk := await self._out.read(min(_CHUNK, most - len(out)))):
            out += chunk
        if cut := len(out) >= most:
            self._drop()
        return bytes(out), cut

    async def errors(self) -> bytes:
        """The beginning of its stderr, once it has ended."""
        await self._errors
        return bytes(self._said)

    async def collect(self, most: int) -> tuple[bytes, bytes, int]:
        """The beginning of stdout (`most` bytes) and stderr, and the exit code. Output of processes that it leaves
        behind is awaited only for a moment."""
        out = bytearray()
        reading = spawn(_keep(out, self._out, most), name="output of a program")
        try:
            code = await self.code()
            await asyncio.wait((reading, self._errors), timeout=MOMENT)
        finally:
            reading.cancel()
        return bytes(out), bytes(self._said), code

    async def code(self) -> int:
        """Its exit code, once it has ended."""
        await self._over.wait()
        code = self._popen.returncode
        return code if code >= 0 else 128 - code

    async def close(self) -> None:
        """End it with its group, where it still runs."""
        self._drop()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self._over.wait()

    def _drop(self) -> None:
        if self._popen.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)
        if self._feeding is not None and self._feeding.get_write_buffer_size():
            self._feeding.abort()
        for reading in self._reading:
            reading.close()
        for pipe in self._unused:
            pipe.close()
        for stream in (self._out, self._err):
            stream.feed_eof()

    def _collect(self, watch: int) -> None:
        """The kernel says that it has ended."""
        asyncio.get_running_loop().remove_reader(watch)
        os.close(watch)
        self._popen.poll()
        self._over.set()

    def _poll(self) -> None:
        """Where the kernel does not say it."""
        if self._popen.poll() is None:
            asyncio.get_running_loop().call_later(0.05, self._poll)
        else:
            self._over.set()


async def open_piped(
    argv: Sequence[str], *, env: Mapping[str, str], data: bytes | None = b"", cwd: str = "/", most_errors: int = _CHUNK
) -> CapturedProcess:
    """Start a program in its own group with `data` as its input (None: no input). Raises `OSError` where it cannot
    be started."""
    pipe, stdin = subprocess.PIPE, subprocess.DEVNULL if data is None else subprocess.PIPE
    popen = _Detached(argv, cwd=cwd, env=dict(env), stdin=stdin, stdout=pipe, stderr=pipe, start_new_session=True)
    running = CapturedProcess(popen, most_errors)
    try:
        await running.connect(data)
    except BaseException:
        await running.close()
        raise
    return running


class Ended(HermesError):
    """A function that `apart` called in its own process failed or exceeded a limit; the text says which."""


async def apart(
    function: str, data: bytes, *words: str, work: int = WORK_SECONDS, patience: float = WAIT_SECONDS
) -> bytes:
    """Run the named function (as for `late`) on these bytes and words in its own process with limits on CPU time and
    memory. Raises `Ended`, and `OSError` where no process can be started."""
    argv = [sys.executable, "-I", "-c", _APART, str(_SOURCE), str(work), function, *words]
    running = await open_piped(argv, env={}, data=data)
    try:
        async with asyncio.timeout(patience):
            out, errors, code = await running.rest(), await running.errors(), await running.code()
    except TimeoutError as error:
        raise Ended(f"it took more than {patience:g} s") from error
    finally:
        await running.close()
    if code:
        last = errors.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
        limits = f"{work} s of work or {MEMORY >> 30} GB"
        raise Ended(f"it took more than {limits}, or failed ({code}) {last}".strip())
    return out


def answer() -> None:
    """Entry point of that process: call the function that the arguments name, within the limits."""
    _, _, work, function, *words = sys.argv
    for kind, most in ((resource.RLIMIT_CPU, int(work)), (resource.RLIMIT_AS, MEMORY)):
        with suppress(ValueError, OSError):  # A system without this limit, or with a lower one.
            resource.setrlimit(kind, (most, most))
    sys.stdout.buffer.write(late(function)(sys.stdin.buffer.read(), *words))


async def _keep(kept: bytearray, stream: asyncio.StreamReader, most: int) -> None:
    """Read to the end, and keep the first `most` bytes: who writes more must not wait for a reader."""
    while chunk := await stream.read(_CHUNK):
        kept += chunk[: most - len(kept)]


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    happened: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _resolve, happened)
    try:
        await happened
    finally:
        loop.remove_reader(descriptor)


def _resolve(happened: asyncio.Future[None]) -> None:
    if not happened.done():
        happened.set_result(None)


async def _end(leader: int, mark: bytes) -> bool:
    if not await _signal_family(leader, mark, signal.SIGTERM) or await _gone_within(leader, mark, GRACE):
        return True
    loop = asyncio.get_running_loop()
    until = loop.time() + _LAST_RESORT
    while loop.time() < until:
        if not await _signal_family(leader, mark, signal.SIGKILL):
            return True
        await asyncio.sleep(_GLANCE)
    return False


async def _gone_within(leader: int, mark: bytes, seconds: float) -> bool:
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    pause = _GLANCE / 2
    while loop.time() < until:
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.1)
        if not await asyncio.to_thread(family, leader, mark):
            return True
    return False


async def _signal_family(leader: int, mark: bytes, number: signal.Signals) -> bool:
    """Signal everyone; whether there was anyone."""
    members = [row.pid for row in await asyncio.to_thread(family, leader, mark)]
    for pid in members:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    if leader > 1 and not PROC.joinpath("self").exists():  # without a table there is still the group
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)
            return True
    return bool(members)
