"""A place reached through any transport: `supervisor.sh` runs there and keeps the commands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Location
from hermes_agent.core.messages import Origin, Quoted
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.executions import EXEC_ID, KEPT, check_length, check_text
from hermes_agent.sandbox.place import AlreadyStarted, Command, Ended, PlaceFailed
from hermes_agent.sandbox.transport import Call, Transport, Unreachable, Ways
from hermes_agent.sandbox.wrapper import reached_script

SMALL = 65536  # as in supervisor.sh
TRIES = 3
T = TypeVar("T")
SETTLE_SECONDS = 0.2  # in which the call of a command that was ended ends too


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The supervisor's report about a command: `ended` None while it runs; `directory` of its kept shell; `output`
    is the beginning of its output, one byte more than `SMALL` where there is more."""

    ended: Ended | None
    directory: str = ""
    output: bytes | None = None


class RemotePlace:
    """Runs commands in a place that is reached through a transport (container, SSH, Apptainer); implements `Place`.
    `ways` gives the transports."""

    def __init__(self, name: str, ways: Ways) -> None:
        self.name = name
        self._ways = ways
        self._directories: dict[str, str] = {}
        self._locations: dict[Transport, Location] = {}
        self._heard: dict[asyncio.Task[Said], Call] = {}

    async def start(self, exec_id: str, command: Command) -> RemoteCommand:
        group = _group(exec_id)
        check_text(command.text)
        check_length(command)
        if command.lent:
            raise PlaceFailed(
                "A command cannot be lent a secret in this place.", hint="Only commands on this machine can have one."
            )
        reach = await self._ways.to(group, command.folder)
        assert reach is not None, "a group that begins has a way"
        kept = f"{reach.records}/{command.shell}/{KEPT}" if command.shell else ""
        script = reached_script(
            kept=kept,
            env=reach.environment,
            keeps=bool(kept) and command.keeps,
            has_workdir=bool(command.workdir),
            text=command.text,
            pty=command.pty,
        )
        keeps = "yes" if kept and command.keeps else "no"
        mode = "background" if command.background else "plain"
        limit = f"{command.limit:.1f}" if command.limit else "0"
        arguments = [exec_id, command.shell, keeps, command.folder, command.workdir, mode, limit]
        data = msgspec.json.encode(command) + b"\n" + script.encode()

        async def attempt() -> tuple[Call, str, str]:
            """Where the way broke before the first line, the id may be claimed: the next start says so."""
            call = await reach.call(["start", reach.records, *arguments], data)
            return (call, *_word(await call.line()))

        return await self._begun(reach, exec_id, command, *await _retried(reach, attempt))

    async def attach(self, exec_id: str) -> RemoteCommand | None:
        reach = await self._ways.to(_group(exec_id))
        if reach is None:
            return None
        word, _, rest = await ask(reach, "attach", exec_id)
        if word == "none":
            self._locations.pop(reach, None)  # it is asked for now, and must be what it is now
            return None
        cwd, _, meta = rest.partition(b"\n")
        command = msgspec.json.decode(meta, type=Command)
        return RemoteCommand(self, reach, exec_id, command, cwd.decode(errors="surrogateescape"))

    async def location(self, folder: str) -> Location:
        reach = await self._ways.near(folder)
        if reach not in self._locations:
            _, facts, _ = await ask(reach, "where")
            boot, store, machine = facts.split(" ", 2)
            place = f"{self.name}:{reach.records}:{store}"
            self._locations[reach] = Location(machine=machine, place=place, boot=boot)
        return self._locations[reach]

    async def list(self, group: str) -> tuple[str, ...]:
        reach = await self._ways.to(group)
        if reach is None:
            return ()
        _, _, rest = await ask(reach, "list", group)
        rows = [line.split(" ", 2) for line in rest.decode().splitlines()]
        return tuple(exec_id for _, _, exec_id in sorted(rows, key=lambda row: (int(row[0]), int(row[1]))))

    async def directory(self, shell: str) -> str:
        if shell in self._directories:
            return self._directories[shell]
        reach = await self._ways.to(shell)
        if reach is None:
            return ""
        _, _, rest = await ask(reach, "directory", shell)
        return rest.decode(errors="surrogateescape").removesuffix("\n")

    def exported(self, shell: str) -> Mapping[str, str]:  # noqa: ARG002 - the Protocol's shape
        """Empty: another machine would have to be asked before each command."""
        return {}

    async def prune(self, minutes: int, megabytes: int) -> int:
        reach = await self._ways.near("")
        return int((await ask(reach, "prune", str(minutes), str(megabytes)))[1])

    def wall(self) -> str:
        """What it runs in is the wall."""
        return self.name

    def waits_for(self, folder: str) -> str:  # noqa: ARG002 - the Protocol's shape
        """Empty: only the commands themselves take long."""
        return ""

    async def close(self) -> None:
        for task, call in list(self._heard.items()):
            task.cancel()
            await call.close()
        await self._ways.close()

    def hear(self, call: Call, name: str) -> asyncio.Task[Said]:
        """Wait for a command's end on the call that started it."""
        task = spawn(_hear(call), name=name)
        self._heard[task] = call
        task.add_done_callback(lambda done: self._heard.pop(done, None))
        return task

    def learn(self, shell: str, directory: str) -> None:
        """Cache the directory of the kept shell."""
        if shell and directory:
            self._directories[shell] = directory

    async def _begun(
        self, reach: Transport, exec_id: str, command: Command, call: Call, word: str, facts: str
    ) -> RemoteCommand:
        match word:
            case "begun":
                return await self._first(RemoteCommand(self, reach, exec_id, command, facts), call)
            case "exists":
                await call.close()
                raise AlreadyStarted(f"{exec_id} was started before.")
            case "nodir":
                await call.close()
                quoted = Quoted(text=facts, origin=Origin.TOOL)
                raise PlaceFailed(f"The working directory does not exist in {self.name}:", quoted=quoted)
        await call.close()
        quoted = Quoted(text=facts, origin=Origin.TOOL)
        raise PlaceFailed(f"The command could not be started in {self.name}.", quoted=quoted if facts else None)

    async def _first(self, running: RemoteCommand, call: Call) -> RemoteCommand:
        """A background command's call has ended at once; any other's ends with the command."""
        if running.command.background:
            with suppress(Unreachable):
                await call.rest()
        else:
            running.hearing = self.hear(call, f"end of {running.exec_id}")
        return running


class RemoteCommand:
    """A command in a remote place, running or ended; implements `Running`. `hearing` waits for the end on the call
    that started it; `follow_up` runs once it has ended."""

    def __init__(self, place: RemotePlace, reach: Transport, exec_id: str, command: Command, cwd: str) -> None:
        self.exec_id = exec_id
        self.command = command
        self.cwd = cwd
        self.output_path = f"{reach.records}/{exec_id}/out"
        self._place = place
        self._reach = reach
        self._said = Said(ended=None)
        self.hearing: asyncio.Task[Said] | None = None
        self.follow_up: Callable[[Ended], Awaitable[Ended]] | None = None

    async def wait(self) -> Ended:
        ended = await self._end()
        return await self.follow_up(ended) if self.follow_up else ended

    async def poll(self) -> Ended | None:
        ended = await self.glance()
        return await self.follow_up(ended) if ended and self.follow_up else ended

    async def _end(self) -> Ended:
        if self.hearing is not None:
            with suppress(Unreachable):
                self._note(await asyncio.shield(self.hearing))
            self.hearing = None
        while (ended := self._said.ended) is None:
            await self._ask("await")
        if ended.children:
            with suppress(PlaceFailed):  # They may leave no room to look after them; how it ended is known.
                await self._ask("await")
        return self._said.ended or ended

    async def glance(self) -> Ended | None:
        """`poll` without the follow-up."""
        if self.hearing is not None:
            if not self.hearing.done():
                return None
            return await self._end()
        if self._said.ended is None or self._said.ended.children:
            await self._ask("poll")
        return self._said.ended

    async def size(self) -> int:
        if self._is_whole:
            return len(self._said.output or b"")
        return int((await ask(self._reach, "size", self.exec_id))[1])

    async def read(self, start: int, limit: int) -> bytes:
        if self._is_whole:
            return (self._said.output or b"")[start : start + limit]
        _, _, rest = await ask(self._reach, "part", self.exec_id, str(start), str(limit))
        return rest

    async def cover(self, start: int, data: bytes) -> None:
        await ask(self._reach, "cover", self.exec_id, str(start), data=data)
        if self._said.output is not None:
            before = self._said.output
            after = (before[:start] + data + before[start + len(data) :])[: len(before)]
            self._said = replace(self._said, output=after if start < len(before) else before)

    async def rewrite(self, data: bytes) -> None:
        await ask(self._reach, "rewrite", self.exec_id, data=data)
        if self._said.output is not None:
            self._said = replace(self._said, output=data)

    async def write(self, data: bytes) -> None:
        await ask(self._reach, "send", self.exec_id, data=data)

    async def signal(self, number: int) -> None:
        await ask(self._reach, "signal", self.exec_id, str(number))

    async def kill(self) -> bool:
        word, _, rest = await ask(self._reach, "stop", self.exec_id, self.command.shell)
        line, _, rest = rest.partition(b"\n")
        self._note(_said(*_word(line.decode()), rest))
        if self.hearing is not None and word == "gone":
            await asyncio.wait([self.hearing], timeout=SETTLE_SECONDS)
        self.hearing = None
        return word == "gone"

    @property
    def _is_whole(self) -> bool:
        """Whether all of its output is here, and nobody is left to add to it."""
        said = self._said
        known = said.output is not None and len(said.output) <= SMALL
        return known and said.ended is not None and not said.ended.children

    async def _ask(self, what: str) -> None:
        word, facts, rest = await ask(self._reach, what, self.exec_id, self.command.shell)
        self._note(_said(word, facts, rest))

    def _note(self, said: Said) -> None:
        before = self._said.ended
        if before is not None and said.ended is not None:
            said = replace(said, ended=replace(before, children=said.ended.children))
        self._said = said
        self._place.learn(self.command.shell, said.directory)


async def ask(reach: Transport, what: str, *arguments: str, data: bytes = b"") -> tuple[str, str, bytes]:
    """Call the supervisor: its status word, its facts, and further output. Raises `PlaceFailed` for the status
    `fail`."""

    async def attempt() -> tuple[str, str, bytes]:
        call = await reach.call([what, reach.records, *arguments], data)
        return (*_word(await call.line()), await call.rest())

    word, facts, rest = await _retried(reach, attempt)
    if word == "fail":
        raise PlaceFailed("The place failed:", quoted=Quoted(text=facts, origin=Origin.TOOL))
    return word, facts, rest


async def _retried(reach: Transport, attempt: Callable[[], Awaitable[T]]) -> T:
    """Try again where the way broke and the place is the same. Raises `PlaceFailed` with what was lost where it is
    another one."""
    for _ in range(TRIES - 1):
        with suppress(Unreachable):
            return await attempt()
        if lost := await reach.restore():
            raise PlaceFailed(lost, hint="Look what is still there, then do again what needs to be done again.")
    return await attempt()


async def _hear(call: Call) -> Said:
    line = await call.line()
    return _said(*_word(line), await call.rest())


def _said(word: str, facts: str, rest: bytes) -> Said:
    match word:
        case "ended":
            code, began, ended, left = facts.split(" ")
            directory, _, output = rest.partition(b"\n")
            seconds = max(0.0, float(ended) - float(began))
            end = Ended(code=int(code), seconds=seconds, children=left == "1")
            return Said(ended=end, directory=directory.decode(errors="surrogateescape"), output=output)
        case "unseen":
            return Said(ended=Ended(code=None, seconds=0.0, children=facts == "1"))
    return Said(ended=None)


def _word(line: str) -> tuple[str, str]:
    word, _, facts = line.partition(" ")
    return word, facts


def _group(exec_id: str) -> str:
    if not EXEC_ID.fullmatch(exec_id):
        raise PlaceFailed(f"`{exec_id}` is not an exec id.")
    return exec_id.partition("/")[0]
