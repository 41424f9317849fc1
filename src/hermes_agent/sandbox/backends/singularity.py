"""Apptainer (or Singularity) as a place: an instance for each folder where sessions work."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hermes_agent.host.process import Finished, run
from hermes_agent.sandbox.folders import GroupFolders
from hermes_agent.sandbox.jail import Walls, check_workspace
from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.remote_place import RemotePlace
from hermes_agent.sandbox.settings import SingularitySettings
from hermes_agent.sandbox.supervisor import words
from hermes_agent.sandbox.transport import Call, program_call

RECORDS = "/hermes"
START_SECONDS = 900.0
AGAIN_SECONDS = 30.0


def build(
    folder: Path,
    settings: SingularitySettings,
    walls: Walls,
    env: Mapping[str, str],
    told: Mapping[str, str],
    *,
    records: str = RECORDS,
) -> RemotePlace:
    """The place. `folder` keeps what belongs to it on this machine, `env` is what the program sees, `told` what a new
    shell there is told, `records` where it sees its records. Raises `PlaceFailed` where no image is named or there is
    no such program."""
    if not settings.image:
        raise PlaceFailed("No image is named: set `terminal.singularity.image`.")
    found = shutil.which("apptainer") or shutil.which("singularity")
    program = list(settings.command) or ([found] if found else [])
    if not program:
        raise PlaceFailed("There is neither apptainer nor singularity here.")
    setup = Setup(folder, program, settings, walls, env, told, records)
    return RemotePlace("singularity", Instances(setup))


class Setup(NamedTuple):
    """What every instance is started with; see `build`."""

    folder: Path
    program: Sequence[str]
    settings: SingularitySettings
    walls: Walls
    env: Mapping[str, str]
    told: Mapping[str, str]
    records: str

    async def do(self, *arguments: str) -> Finished:
        """Run the program to its end."""
        try:
            return await run([*self.program, *arguments], env=self.env, seconds=START_SECONDS)
        except (OSError, TimeoutError) as error:
            raise PlaceFailed(f"`{self.program[0]} {arguments[0]}` failed: {error}.") from error


class Instances:
    """See `Ways`: the instance of each folder, and the folder of each group."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._folders = GroupFolders(setup.folder / "groups")
        self._open: dict[str, Instance] = {}

    async def to(self, group: str, folder: str = "") -> Instance | None:
        folder = await asyncio.to_thread(self._folders.of, group, folder)
        if folder and folder not in self._open:
            await asyncio.to_thread(check_workspace, folder)
            instance = Instance(self._setup, folder)
            await instance.begin()
            self._open.setdefault(folder, instance)
        return self._open.get(folder)

    async def near(self, path: str, folder: str) -> Instance:  # noqa: ARG002 - every folder has an instance
        found = await self.to("_", folder) if folder else next(iter(self._open.values()), None)
        if found is None:
            raise PlaceFailed("No instance runs yet.")
        return found

    async def close(self) -> None:
        """Nothing is held open: instances run on, with their commands."""


class Instance:
    """See `Transport`."""

    def __init__(self, owner: Setup, folder: str) -> None:
        self.environment = dict(owner.told)
        self.records = f"{owner.records}/exec"
        self._owner = owner
        self._folder = folder
        self._name = f"hermes-{_short(f'{owner.folder}:{folder}')}"
        self._made_anew = float("-inf")
        self._starting = asyncio.Lock()

    async def begin(self) -> None:
        """Take the instance that there is, or start it."""
        async with self._starting:
            if not await self._runs():
                await self._start()

    async def call(self, arguments: Sequence[str], data: bytes = b"") -> Call:
        owner = self._owner
        argv = [*owner.program, "exec", f"instance://{self._name}", *words(arguments)]
        return await program_call(argv, owner.env, data, failed=255)

    async def restore(self) -> str:
        async with self._starting:
            if await self._runs():
                return ""
            now = asyncio.get_running_loop().time()
            if now - self._made_anew < AGAIN_SECONDS:
                raise PlaceFailed(f"The instance for {self._folder} died again right after it was started anew.")
            await self._start()
            self._made_anew = now
        return (
            f"The instance stopped and was started anew. Lost: whatever ran in it, and files outside of {self._folder}."
            f" Kept: files in {self._folder}, the working directory and exported variables, the output of commands."
        )

    async def _runs(self) -> bool:
        listed = await self._owner.do("instance", "list", self._name)
        return self._name in listed.out.decode(errors="replace")

    async def _start(self) -> None:
        owner = self._owner
        records = owner.folder / "records"
        for path in (records / "exec", records / "home"):
            await asyncio.to_thread(path.mkdir, parents=True, exist_ok=True, mode=0o700)
        network = [] if owner.walls.network else ["--net", "--network", "none"]
        walls = ["--containall", "--no-privs", *network, "--home", f"{records / 'home'}:{owner.records}/home"]
        binds = [word for bind in self._binds(records) for word in ("--bind", bind)]
        made = await owner.do(
            "instance", "start", *walls, *binds, *owner.settings.arguments, owner.settings.image, self._name
        )
        if made.code:
            why = made.err.decode(errors="replace").strip().rpartition("\n")[2]
            raise PlaceFailed(f"The instance of {owner.settings.image} could not be started: {why}")

    def _binds(self, records: Path) -> Iterator[str]:
        yield f"{records}:{self._owner.records}"
        for path in (self._folder, *self._owner.walls.writable):
            if ":" in path or "," in path:
                raise PlaceFailed(f"{path} cannot be shown in a container: its name holds a colon or comma.")
            yield f"{path}:{path}"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
