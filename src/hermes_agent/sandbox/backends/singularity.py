"""Apptainer (or Singularity) instances as a place: one for each session folder."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hermes_agent.core.messages import Origin, Quoted
from hermes_agent.host.process import Finished
from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.remote_place import RemotePlace
from hermes_agent.sandbox.settings import SingularitySettings
from hermes_agent.sandbox.transport import Call, FolderWays, Renewed, program_call, run_to_end, short_hash, words
from hermes_agent.sandbox.walls import Walls

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
    """Build the place. `folder` keeps its files on this machine, `env` is the environment of the program, `told`
    that of a new shell there, `records` the path of its records there. Raises `PlaceFailed` where no image is
    named or the program is missing."""
    if not settings.image:
        raise PlaceFailed("No image is named: set `terminal.singularity.image`.")
    found = shutil.which("apptainer") or shutil.which("singularity")
    program = list(settings.command) or ([found] if found else [])
    if not program:
        raise PlaceFailed("There is neither apptainer nor singularity here.")
    setup = Setup(folder, program, settings, walls, env, told, records)

    async def begin(path: str) -> Instance:
        instance = Instance(setup, path)
        if await instance.why_gone():
            await instance.renew()
        return instance

    return RemotePlace("singularity", FolderWays(folder / "groups", begin))


class Setup(NamedTuple):
    """What all Apptainer instances of a home share: program, settings, folders, environments."""

    folder: Path
    program: Sequence[str]
    settings: SingularitySettings
    walls: Walls
    env: Mapping[str, str]
    told: Mapping[str, str]
    records: str

    async def do(self, *arguments: str) -> Finished:
        """Run the program to its end."""
        return await run_to_end([*self.program, *arguments], self.env, START_SECONDS)


class Instance(Renewed):
    """Connection into one Apptainer instance, which is recreated when gone; implements `Transport`."""

    kind = "instance"

    def __init__(self, owner: Setup, folder: str) -> None:
        super().__init__(folder, owner.told)
        self.records = f"{owner.records}/exec"
        self._owner = owner
        self._name = f"hermes-{short_hash(f'{owner.folder}:{folder}')}"

    async def call(self, arguments: Sequence[str], data: bytes = b"") -> Call:
        owner = self._owner
        argv = [*owner.program, "exec", f"instance://{self._name}", *words(arguments)]
        return await program_call(argv, owner.env, data, failed=255)

    async def why_gone(self) -> str:
        """Whether no instance of its name runs."""
        listed = await self._owner.do("instance", "list", self._name)
        return "" if self._name in listed.out.decode(errors="replace") else "stopped"

    async def renew(self) -> None:
        """Start it."""
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
            quoted = Quoted(text=why, origin=Origin.TOOL)
            raise PlaceFailed(f"The instance of {owner.settings.image} could not be started:", quoted=quoted)

    def _binds(self, records: Path) -> Iterator[str]:
        yield f"{records}:{self._owner.records}"
        for path in (self.folder, *self._owner.walls.writable):
            if ":" in path or "," in path:
                raise PlaceFailed(f"{path} cannot be shown in a container: its name holds a colon or comma.")
            yield f"{path}:{path}"
