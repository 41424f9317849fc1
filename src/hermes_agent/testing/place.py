"""Fake execution place without processes: a test decides what each command prints and when it ends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Location
from hermes_agent.sandbox.place import AlreadyStarted, Command, Ended, PlaceFailed
from hermes_agent.testing.clock import FakeClock

EXEC_ID = re.compile(r"(?P<group>[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,119})/[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,119}")
KILLED = 128 + 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Scripted behaviour of a command in a `FakePlace`: its output, exit code, and duration in seconds (None: until
    `finish` or a kill)."""

    output: bytes = b""
    code: int = 0
    seconds: float | None = 0.0
    children: bool = False


class FakeRunning:
    """A running command of a `FakePlace`. `written` and `signals` record what it was sent."""

    def __init__(self, exec_id: str, command: Command, play: Play, clock: Clock) -> None:
        self.written = b""
        self.signals: list[int] = []
        self.exec_id = exec_id
        self.command = command
        self._play = play
        self._clock = clock
        self._began = clock.monotonic()
        self._ended: Ended | None = None
        self._over = asyncio.Event()

    @property
    def cwd(self) -> str:
        return self.command.workdir or self.command.folder

    @property
    def output_path(self) -> str:
        return f"/fake/{self.exec_id}/output"

    async def wait(self) -> Ended:
        async with asyncio.TaskGroup() as group:
            over = group.create_task(self._wait_until_over())
            if self._play.seconds is not None:
                left = self._began + self._play.seconds - self._clock.monotonic()
                due = group.create_task(self._clock.sleep(max(0.0, left)))
                due.add_done_callback(lambda _: self._look())
                over.add_done_callback(lambda _: due.cancel())
        ended = self._look()
        assert ended is not None
        return ended

    async def poll(self) -> Ended | None:
        return self._look()

    async def size(self) -> int:
        return len(self._play.output)

    async def read(self, start: int, limit: int) -> bytes:
        return self._play.output[start : start + limit]

    def goes_on(self, output: bytes) -> None:
        """Append output."""
        self._play = replace(self._play, output=self._play.output + output)

    async def cover(self, start: int, data: bytes) -> None:
        before = self._play.output
        self._play = replace(self._play, output=before[:start] + data + before[start + len(data) :])

    async def rewrite(self, data: bytes) -> None:
        self._play = replace(self._play, output=data)

    async def write(self, data: bytes) -> None:
        if not self.command.background:
            raise PlaceFailed("The input of a command in the foreground is empty.")
        self.written += data

    async def signal(self, number: int) -> None:
        self.signals.append(number)

    async def kill(self) -> bool:
        if self._look() is None:
            self.finish(KILLED)
        return True

    def finish(self, code: int = 0, output: bytes = b"") -> None:
        """End the command now, with more `output`."""
        seconds = self._clock.monotonic() - self._began
        self._play = Play(output=self._play.output + output, code=code, seconds=seconds)
        self._look()

    async def _wait_until_over(self) -> None:
        await self._over.wait()

    def _look(self) -> Ended | None:
        """The command's end, if the clock has reached it."""
        play = self._play
        if self._ended or play.seconds is None or self._clock.monotonic() < self._began + play.seconds:
            return self._ended
        self._ended = Ended(code=play.code, seconds=play.seconds, children=play.children)
        self._over.set()
        return self._ended


@dataclass(slots=True, kw_only=True)
class FakePlace:
    """An in-memory `Place`. It survives a simulated crash of the program, as commands of a real place do.

    `plays` gives a command's behaviour; `started` holds every command in starting order; `waiting` is the answer of
    `waits_for`, `walled` that of `wall`.
    """

    plays: Callable[[Command], Play] = lambda command: Play(output=f"ran {command.text}\n".encode())
    clock: Clock = field(default_factory=FakeClock)
    started: list[FakeRunning] = field(default_factory=list)
    name: str = "fake"
    waiting: str = ""
    walled: str = "bubblewrap"

    async def start(self, exec_id: str, command: Command) -> FakeRunning:
        if not EXEC_ID.fullmatch(exec_id):
            raise PlaceFailed(f"`{exec_id}` is not an exec id.")
        if self._find(exec_id) is not None:
            raise AlreadyStarted(f"`{exec_id}` was started before.")
        running = FakeRunning(exec_id, command, self.plays(command), self.clock)
        self.started.append(running)
        return running

    async def attach(self, exec_id: str) -> FakeRunning | None:
        return self._find(exec_id)

    async def location(self, folder: str) -> Location:  # noqa: ARG002 - the Protocol's shape
        return Location(place=self.name)

    async def list(self, group: str) -> tuple[str, ...]:
        found = [running for running in self.started if running.exec_id.startswith(f"{group}/")]
        return tuple(
            [running.exec_id for running in found if running.command.background or await _left_children(running)]
        )

    async def directory(self, shell: str) -> str:
        kept = [each for each in self.started if each.command.shell == shell and each.command.keeps]
        return kept[-1].cwd if kept else ""

    def exported(self, shell: str) -> Mapping[str, str]:  # noqa: ARG002 - the Protocol's shape
        return {}

    async def prune(self, minutes: int, megabytes: int) -> int:  # noqa: ARG002 - the Protocol's shape
        """Deletes nothing, so that a test can inspect it."""
        return 0

    def wall(self) -> str:
        return self.walled

    def waits_for(self, folder: str) -> str:  # noqa: ARG002 - the Protocol's shape
        return self.waiting

    async def close(self) -> None:
        """Nothing is open."""

    def _find(self, exec_id: str) -> FakeRunning | None:
        return next((running for running in self.started if running.exec_id == exec_id), None)


async def _left_children(running: FakeRunning) -> bool:
    ended = await running.poll()
    return ended is not None and ended.children
