"""A remote place with its own files: changed files are copied there before each command and back after it.

The remote folder is scanned before and after the command: a different stamp means that the command changed the
file. Changed files are copied here, deleted ones are deleted; where both sides changed a file, ours stays and
theirs is put below `.theirs`. Nothing is deleted here only because it is missing there: a folder that is new,
empty, replaced or shorter than before gets the local files.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Location
from hermes_agent.core.errors import HermesError
from hermes_agent.host.locks import held, in_thread
from hermes_agent.host.paths import write_private
from hermes_agent.sandbox.place import Command, Deletion, Ended, PlaceFailed
from hermes_agent.sandbox.remote_place import RemoteCommand, RemotePlace
from hermes_agent.sandbox.sync.sides import (
    FETCH,
    MARK,
    REMOVE,
    SEND,
    THEIRS,
    Found,
    Here,
    Rules,
    Shell,
    There,
    is_too_much,
    unpacked,
)
from hermes_agent.sandbox.transport import Ways

MOVED, FILES_MOVED = 16 << 20, 500  # bytes and files of one archive
MANY = 20
"""Where a command deleted more of the files that were sent, or more than half of them, a person is asked."""
NAMED, MOST_BEGUN = 5, 100
CLASH = f"Changed on both sides, ours stays here and theirs is below {THEIRS}/"
CHANGED_THERE = f"Changed there, though not by a command here: ours was sent there, theirs is below {THEIRS}/"
KEPT_BESIDE = "theirs is kept beside"  # stands for how ours looked: it is sent next


class State(msgspec.Struct):
    """Sync state of a remote folder: `which` it is, the last stamp of each file `there`, and in `common` the stamps
    on both sides when they were equal. `made` are files that remote commands made, `sending` those being sent.
    `begun` are commands whose end was not processed yet, each with its start folder."""

    which: str = ""
    there: dict[str, str] = {}
    common: dict[str, tuple[str, str]] = {}
    made: set[str] = set()
    sending: set[str] = set()
    begun: dict[str, str] = {}

    def known(self, path: str) -> tuple[str, str]:
        """The stamps here and there when both sides were equal; empty where they never were."""
        return self.common.get(path, ("", ""))

    def news(self, found: Found) -> list[str]:
        """The remote files whose stamp changed since the last scan."""
        return [path for path, look in found.files.items() if self.there.get(path) != look]


@dataclass(slots=True, kw_only=True)
class Sync:
    """Synchronises one folder; `file` keeps its state. `doing` describes the current work for a person who waits.
    Calls raise `PlaceFailed`."""

    here: Here
    there: There
    file: Path
    doing: str = ""

    async def begun(self) -> tuple[str, ...]:
        """The commands whose end was not processed yet."""
        return tuple((await asyncio.to_thread(self._read)).begun)

    async def up(self, exec_id: str, over: Collection[str] = ()) -> tuple[str, ...]:
        """Before a command: send local changes. `over` are earlier commands that ended unseen, or never started.
        Returns sentences for the model about what was not copied."""
        async with self._turn("sending what changed here") as state:
            found = await self._open()
            if found.which != state.which:
                state.which, state.there, state.common, state.made, state.sending = found.which, {}, {}, set(), set()
            unseen = state.news(found) if found.which in state.begun.values() else []
            notes = await self._take(state, found, unseen) + await self._send(state, found)
            begun = [(each, which) for each, which in state.begun.items() if each not in over]
            state.begun = dict(begun[-MOST_BEGUN:]) | {exec_id: found.which}
            return notes

    async def down(self, exec_id: str, ended: Ended) -> tuple[tuple[str, ...], Deletion | None]:
        """After a command: fetch its changes. Returns sentences for the model, and the deletions that only a person
        may approve; nothing where that was done before."""
        async with self._turn("looking for what changed there") as state:
            which = state.begun.pop(exec_id, "")
            found = await self.there.scan() if which else None
            if found is None:
                return (), None
            if not found.which == which == state.which:
                why = f"{self.there.folder} there is gone, or another one than before the command"
                return (f"{why}: nothing was taken over from it, all files here were left alone.",), None
            notes = await self._take(state, found, state.news(found))
            more, deletion = await self._take_deletions(state, found) if ended.code is not None else ((), None)
            state.there = found.files
            state.begun |= {exec_id: which} if ended.children else {}
            return notes + more, deletion

    async def _open(self) -> Found:
        """The files there; the folder is marked where it is new."""
        found = await self.there.scan()
        if not found.which:
            await self.there.run(MARK, secrets.token_hex(12))
            found = await self.there.scan()
        if not found.which:
            raise PlaceFailed(f"{self.there.folder} there cannot be written.")
        return found

    async def _take(self, state: State, found: Found, paths: Collection[str], why: str = CLASH) -> tuple[str, ...]:
        """Copy these files here, or below `.theirs`: where they changed here too, and all where it is said `why`. Those
        that could not be copied are news the next time as well."""
        clashing, refused = list[str](), {path for path in paths if path not in state.sending}

        def take(archive: bytes, some: list[str]) -> None:
            for path, info, content in unpacked(archive, some):
                look, beside = self.here.stamp(path), f"{THEIRS}/{path}"
                if self.here.holds(path, info, content):
                    kept = look
                elif why == CLASH and look in ("", state.known(path)[0]):
                    kept = self.here.write(path, info, content, over=look)
                    state.made |= {path} - state.common.keys() if kept else set()
                else:
                    kept = KEPT_BESIDE if self.here.write(beside, info, content, over=self.here.stamp(beside)) else ""
                    clashing.extend([path] if kept else ())
                if kept:
                    state.common[path] = (kept, found.files[path])
                    refused.discard(path)

        for some in _batches(found.files, sorted(refused)):
            self.doing = f"copying files here: {len(refused):,} to go"
            archive = await self.there.run(FETCH, state.which, some)
            await in_thread(partial(take, archive, some))
        for path in refused:
            found.others[path] = 0
            del found.files[path]
        return (
            *_sentence("Not copied here for its size or name", found.too_large() if paths else ()),
            *_sentence(why, clashing),
            *_sentence("Not copied here, a link, the disk or a change of just now is in the way", sorted(refused)),
        )

    async def _take_deletions(self, state: State, found: Found) -> tuple[tuple[str, ...], Deletion | None]:
        """Delete here what was there before the command and is not any more, where it is as both had it. Where that is
        much a person is asked."""
        gone = sorted(path for path in state.common.keys() & state.there.keys() if found.lacks(path))
        if gone and not found.is_whole:
            return ("Not everything there could be read: what is missing there was not deleted here.",), None
        sent = [path for path in gone if path not in state.made]
        if len(sent) > MANY or 2 * len(sent) > len(state.common.keys() - state.made) or (gone and not found.files):
            return _sentence(f"Gone there and kept here ({len(gone):,})", gone), self._deletion(gone)
        await in_thread(partial(self._delete, state, gone))
        return (), None

    def _delete(self, state: State, paths: Collection[str]) -> int:
        """Delete those of the files that are as both sides had them; how many. Blocks."""
        done = [path for path in paths if path in state.common and self.here.delete(path, state.common[path][0])]
        for path in done:
            del state.common[path]
            state.made.discard(path)
        return len(done)

    def _deletion(self, paths: list[str]) -> Deletion:
        async def delete() -> str:
            async with self._turn("deleting files here") as state:
                count = await in_thread(partial(self._delete, state, paths))
            return f"Deleted here too: {count:,} of {len(paths):,}."

        return Deletion(paths=tuple(paths), delete=delete)

    async def _send(self, state: State, found: Found) -> tuple[str, ...]:
        """Send what changed here and what is missing there; remove there what was removed here."""
        ours = await asyncio.to_thread(self.here.scan)
        clashing, blocked, changed, missing = self._compared(state, ours, found)
        removed = await asyncio.to_thread(
            lambda: {path for path in state.common.keys() - ours.files if ours.is_whole and not self.here.stamp(path)}
        )
        notes = await self._take(state, found, clashing, CHANGED_THERE)
        changed += [path for path in clashing if state.known(path)[0] == KEPT_BESIDE]
        state.sending = {*changed, *missing}
        if state.sending:
            await self._save(state)
        for some in _batches(ours.files, sorted(state.sending)):
            self.doing = f"copying {len(state.sending):,} files there"
            await self.there.run(SEND, state.which, data=await asyncio.to_thread(self.here.packed, some))
        gone = [path for path in removed if found.files.get(path) == state.known(path)[1]]
        if gone:
            await self.there.run(REMOVE, state.which, gone)
        state.common = {path: looks for path, looks in state.common.items() if path not in removed}
        state.there = {path: look for path, look in found.files.items() if path not in gone}
        state.made -= {*removed, *state.sending}
        arrived = (await self.there.scan()).files if state.sending else {}
        for path in state.sending:
            state.common[path] = (ours.files[path], arrived.get(path, ""))
            if arrived.get(path, "").split()[1:3] == _size_and_second(ours.files[path]):  # else it is news again
                state.there[path] = arrived[path]
        state.sending = set()
        return (
            *_sentence("Not copied there for its size or name", ours.too_large() if changed or removed else ()),
            *_sentence("Gone there though no command deleted it, and sent again", missing),
            *_sentence("Not copied there, something else is in the way", blocked),
            *notes,
        )

    @staticmethod
    def _compared(state: State, ours: Found, found: Found) -> tuple[list[str], list[str], list[str], list[str]]:
        """The files here that somebody changed there, that something is in the way of, that changed here, and that are
        missing there. What a command there made is there as whoever made it left it."""
        clashing, blocked, changed, missing = list[str](), list[str](), list[str](), list[str]()
        for path, look in ours.files.items():
            (before, known), theirs = state.known(path), found.files.get(path, "")
            is_ours = look != before or path in state.sending
            if (look, theirs) == (before, known) or (path in state.made and not is_ours):
                continue
            if not theirs and not found.lacks(path):
                blocked += [path] if is_ours else []
            elif theirs not in ("", known) and path not in state.sending:
                clashing.append(path)
            else:
                (changed if is_ours else missing).append(path)
        return clashing, blocked, changed, missing

    @asynccontextmanager
    async def _turn(self, doing: str) -> AsyncIterator[State]:
        """What is known, for one at a time over all processes; kept where the block succeeds."""
        self.doing = "waiting for the files of another command"
        try:
            await asyncio.to_thread(self.file.parent.mkdir, parents=True, exist_ok=True, mode=0o700)
            async with held(self.file.with_suffix(".lock")):
                self.doing = doing
                state = await asyncio.to_thread(self._read)
                yield state
                await self._save(state)
        finally:
            self.doing = ""

    def _read(self) -> State:
        try:
            return msgspec.json.decode(self.file.read_bytes(), type=State)
        except (OSError, msgspec.DecodeError):
            return State()

    async def _save(self, state: State) -> None:
        content = msgspec.json.encode(state)
        await in_thread(lambda: write_private(self.file, content, durable=False))


def _size_and_second(look: str) -> list[str]:
    """Of a file here, as they stand in the look of the same file there."""
    _, size, changed, *_ = look.split()
    return [size, changed[:-9] or "0"]


def _batches(files: Mapping[str, str], paths: Collection[str]) -> Iterator[list[str]]:
    some, size = list[str](), 0
    for path in paths:
        some.append(path)
        size += int(files[path].split()[1])
        if size > MOVED or len(some) >= FILES_MOVED:
            yield some
            some, size = [], 0
    yield from [some] if some else []


def _sentence(words: str, paths: Collection[str]) -> tuple[str, ...]:
    more = f" and {len(paths) - NAMED:,} more" if len(paths) > NAMED else ""
    names = "".join(sign if sign.isprintable() else "?" for sign in ", ".join(list(paths)[:NAMED]))
    return (f"{words}: {names}{more}.",) if paths else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Copying:
    """Parameters of the copying between here and `machine`, whose files `shell` reaches. `folder` is the parent of
    the folders there (empty: their own path); `states` keeps the sync state of each."""

    shell: Shell
    rules: Rules
    machine: str
    states: Path
    folder: str = ""


class SyncedPlace(RemotePlace):
    """`RemotePlace` that synchronises the session's folder around each command."""

    def __init__(self, name: str, ways: Ways, copying: Copying) -> None:
        super().__init__(name, ways)
        self._copying = copying
        self._syncs: dict[str, Sync] = {}
        self._started: dict[str, RemoteCommand | None] = {}  # None: it is about to be

    async def start(self, exec_id: str, command: Command) -> RemoteCommand:
        sync, there = self._sync(command.folder), self._copying.folder
        begun = await sync.begun()
        self._started = {each: known for each, known in self._started.items() if known is None or each in begun}
        self._started.setdefault(exec_id, None)
        group = f"{exec_id.partition('/')[0]}/"
        over = [each for each in begun if each.startswith(group) and await self._is_over(each)]
        notes = await sync.up(exec_id, over)
        is_absolute = command.workdir == command.folder or command.workdir.startswith(f"{command.folder}/")
        workdir = f"{there}{command.workdir}" if is_absolute else command.workdir
        running = await super().start(exec_id, replace(command, folder=f"{there}{command.folder}", workdir=workdir))
        self._started[exec_id] = running
        running.command, running.follow_up = command, _take_over(exec_id, sync, notes)
        return running

    async def attach(self, exec_id: str) -> RemoteCommand | None:
        running = await super().attach(exec_id)
        if running is not None:
            here = running.command.folder.removeprefix(self._copying.folder)
            running.command = replace(running.command, folder=here)
            running.follow_up = _take_over(exec_id, self._sync(here))
        return running

    async def location(self, folder: str) -> Location:
        return await super().location(f"{self._copying.folder}{folder}")

    async def directory(self, shell: str) -> str:
        there, above = await super().directory(shell), self._copying.folder
        return there.removeprefix(above) if there.startswith(f"{above}/") else there

    def waits_for(self, folder: str) -> str:
        """The copying in progress."""
        return self._syncs[folder].doing if folder in self._syncs else ""

    async def _is_over(self, exec_id: str) -> bool:
        """Whether a command of this session has ended with all that it started, or never ran."""
        running = self._started[exec_id] if exec_id in self._started else await super().attach(exec_id)
        if running is None:
            return exec_id not in self._started
        ended = await running.glance()
        return ended is not None and not ended.children

    def _sync(self, folder: str) -> Sync:
        """Raises `PlaceFailed` for a folder that is more than a project's."""
        if folder not in self._syncs:
            root, copying = os.path.realpath(folder), self._copying
            if is_too_much(root, str(Path.home())):
                raise PlaceFailed(
                    f"{folder} is too much to copy to another machine.",
                    hint="Work in a project's folder, or set `terminal.ssh.sync: false`.",
                )
            there = f"{copying.folder}{folder}"
            key = "\0".join((copying.machine, there, root)).encode("utf-8", "surrogateescape")
            self._syncs[folder] = Sync(
                here=Here(root=Path(root), rules=copying.rules),
                there=There(shell=copying.shell, folder=there, rules=copying.rules),
                file=copying.states / f"{hashlib.sha256(key).hexdigest()[:20]}.json",
            )
        return self._syncs[folder]


def _take_over(exec_id: str, sync: Sync, notes: tuple[str, ...] = ()) -> Callable[[Ended], Awaitable[Ended]]:
    """Takes over what a command changed when it has ended, once; notes and what a person is asked go with its end."""
    deletion: Deletion | None = None
    is_done = False

    async def take_over(ended: Ended) -> Ended:
        nonlocal notes, deletion, is_done
        if not is_done:
            try:
                more, deletion = await sync.down(exec_id, ended)
            except HermesError as error:
                more = (f"What it changed was not copied here: {error}",)
            notes += more
            is_done = not ended.children
        return replace(ended, notes=notes, deletion=deletion)

    return take_over
