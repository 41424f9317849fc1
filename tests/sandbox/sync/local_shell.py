"""Ways to the files of another machine that are on this one, and both sides of a folder."""

from __future__ import annotations

import asyncio
import os
import stat
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from hermes_agent.sandbox.place import Deletion, Ended, PlaceFailed
from hermes_agent.sandbox.sync.place import Sync
from hermes_agent.sandbox.sync.sides import FETCH, MARK, MARKER, REMOVE, SCAN, SEND, Here, Rules, There

ENDED = Ended(code=0, seconds=0.0)


@dataclass
class LocalShell:
    """`scripts` are those that it ran; one that holds `breaks` fails. `before` and `after` are called beside each; what
    `after` gives is said."""

    scripts: list[str] = field(default_factory=list)
    breaks: str = ""
    before: Callable[[str], object] = lambda script: None
    after: Callable[[str, bytes], bytes] = lambda script, out: out
    programs: tuple[str, ...] = ("sh",)

    async def said(self, script: str, *arguments: str, data: bytes = b"") -> bytes:
        self.scripts.append(script)
        if self.breaks and self.breaks in script:
            raise PlaceFailed("The connection broke.")
        self.before(script)
        process = await asyncio.create_subprocess_exec(
            *self.programs, "-c", script, "sync", *arguments, stdin=-1, stdout=-1, stderr=-1
        )
        out, err = await process.communicate(data)
        if process.returncode:
            raise PlaceFailed(err.decode())
        return self.after(script, out)


@dataclass
class QuickShell:
    """Does what the scripts do without any process, which is quick. `meddle` is called before each, with its script,
    and may raise; `cut` says after how many members `SEND` and `FETCH` break off; `FETCH` cannot read `unreadable`."""

    meddle: Callable[[str], None] = lambda script: None
    cut: int | None = None
    unreadable: tuple[str, ...] = ()

    async def said(self, script: str, *arguments: str, data: bytes = b"") -> bytes:
        self.meddle(script)
        return self._done(script, Path(arguments[0]), arguments[1], data)

    def _done(self, script: str, root: Path, argument: str, data: bytes) -> bytes:
        if script == SCAN:
            root.mkdir(parents=True, exist_ok=True)
            return self._scan(root)
        if script == MARK:
            if root.is_dir() and not (root / MARKER).exists():
                (root / MARKER).write_text(argument)
        elif self._which(root) != argument:
            raise PlaceFailed("it is gone, or another one")
        elif script == SEND:
            self._send(root, data)
        elif script == FETCH:
            return self._fetch(root, _names(data))
        elif script == REMOVE:
            for name in _names(data):
                (root / name).unlink(missing_ok=True)
        return b""

    @staticmethod
    def _which(root: Path) -> str:
        marker = root / MARKER
        return f"{marker.read_text()}:{marker.stat().st_ino} {marker.stat().st_ctime_ns}" if marker.exists() else ":"

    def _scan(self, root: Path) -> bytes:
        rows = []
        for path in root.rglob("*"):
            facts = path.lstat()
            if stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
                times = f"{int(facts.st_mtime)} {_time(facts.st_mtime_ns)} {_time(facts.st_ctime_ns)}"
                name = path.relative_to(root)
                rows.append(f"{facts.st_mode:x} {facts.st_size} {times} {facts.st_ino} ./{name}//\n")
        return "\0".join((str(root), str(Path.home()), self._which(root), "".join(rows), "0")).encode()

    def _send(self, root: Path, data: bytes) -> None:
        with tarfile.open(fileobj=BytesIO(data)) as archive:
            for count, info in enumerate(archive):
                if count == self.cut:
                    (root / info.name).parent.mkdir(parents=True, exist_ok=True)
                    (root / info.name).write_bytes(b"half")
                    raise PlaceFailed("The connection broke.")
                archive.extract(info, root, filter="data")

    def _fetch(self, root: Path, names: list[str]) -> bytes:
        buffer = BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name in names:
                if (root / name).exists() and name not in self.unreadable:
                    archive.add(root / name, f"./{name}")
        data = buffer.getvalue()
        return data if self.cut is None else data[: 512 * (2 * self.cut + 1) + 5]


class Sides:
    """A folder here and there."""

    def __init__(self, folder: Path, rules: Rules | None = None, shell: LocalShell | QuickShell | None = None) -> None:
        self.here, self.there = Path(os.path.realpath(folder)) / "here", folder / "there"
        self.here.mkdir()
        self.shell = shell or LocalShell()
        self.rules = rules or Rules()
        self.state = folder / "state" / "one.json"
        self.commands = 0
        self.sync = self.again()

    def again(self) -> Sync:
        """As another process would."""
        there = There(shell=self.shell, folder=str(self.there), rules=self.rules)
        self.sync = Sync(here=Here(root=self.here, rules=self.rules), there=there, file=self.state)
        return self.sync

    async def command(
        self, act: Callable[[], object] = lambda: None, ended: Ended = ENDED
    ) -> tuple[tuple[str, ...], Deletion | None]:
        """What a command that does this is answered with."""
        self.commands += 1
        name = f"g/{self.commands}"
        notes = await self.sync.up(name, await self.sync.begun())
        act()
        more, deletion = await self.sync.down(name, ended)
        return notes + more, deletion


def files(folder: Path) -> dict[str, str]:
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_text() for path in found if path.name != MARKER}


def _names(data: bytes) -> list[str]:
    return [name.decode().removeprefix("./") for name in data.split(b"\0")[:-1]]


def _time(nanoseconds: int) -> str:
    second, rest = divmod(nanoseconds, 10**9)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%d %H:%M:%S}.{rest:09} +0000"
