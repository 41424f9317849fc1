"""Docker or podman containers as a place: one for each session folder."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Origin, Quoted
from hermes_agent.host.locks import held
from hermes_agent.host.process import Finished
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.remote_place import RemotePlace
from hermes_agent.sandbox.settings import ContainerSettings
from hermes_agent.sandbox.transport import Call, FolderWays, Renewed, program_call, run_to_end, short_hash, words
from hermes_agent.sandbox.walls import Walls

RECORDS = "/hermes"
PRIVATE = ("/tmp", "/var/tmp", "/run")
HOME_LABEL, MADE_LABEL = "hermes.home", "hermes.made"
# The first process collects those whose parents died, and goes at once when it is asked to.
WAITS = "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait $!; done"
PULL_SECONDS = 900.0
ROOM_GLANCE = 0.05
FULL_SECONDS = 5
FITS = "for each in 1 2 3 4; do sleep 0.1 & done; wait"
MOST_FILES, MOST_PROCESSES = 65536, 16384  # podman itself keeps no more processes than 32768


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """Creates and removes the containers of a home. `folder` keeps its files about them, `env` is the environment of
    the docker program, `told` that of a new shell in a container."""

    program: Sequence[str]
    folder: Path
    settings: ContainerSettings
    walls: Walls
    env: Mapping[str, str]
    told: Mapping[str, str]

    def name_of(self, folder: str) -> str:
        """The container's name: the same for this home and folder in every process."""
        return f"hermes-{short_hash(str(self.folder))}-{short_hash(folder)}"

    def touch(self, name: str) -> None:
        """Record that the container is in use."""
        used = self.folder / "used"
        used.mkdir(parents=True, exist_ok=True, mode=0o700)
        (used / name).touch()

    async def state(self, name: str, folder: str) -> str:
        """`running`, or why it cannot be used, in words."""
        shown = f'{{{{.State.Status}}}} {{{{.State.ExitCode}}}} {{{{index .Config.Labels "{MADE_LABEL}"}}}}'
        found = await self._do("inspect", "--type", "container", "--format", shown, name)
        if found.code:
            return "it is gone"
        status, code, made = [*found.out.decode().split(), "", "", ""][:3]
        if made != self._made(folder):
            return "the settings changed"
        return "running" if status == "running" else f"{status}, exit code {code}"

    async def has_room(self, name: str, seconds: float = FULL_SECONDS) -> bool:
        """Whether the container can start the extra processes of a command within so many seconds."""
        until = asyncio.get_running_loop().time() + seconds
        while True:
            with suppress(PlaceFailed):
                if not (await self._do("exec", name, "sh", "-c", FITS, seconds=FULL_SECONDS)).code:
                    return True
            if asyncio.get_running_loop().time() > until:
                return False
            await asyncio.sleep(ROOM_GLANCE)

    async def make(self, name: str, folder: str, *, is_full: bool = False) -> None:
        """Create the container where none runs, or replace one that `is_full`. Raises `PlaceFailed`."""
        async with held(self.folder / "locks" / name):  # Two processes would remove each other's container.
            runs = await self.state(name, folder) == "running"
            if not runs or (is_full and not await self.has_room(name, 0)):
                await self._make(name, folder)

    async def _make(self, name: str, folder: str) -> None:
        await self._do("rm", "-f", name)
        records = self.folder / "records"
        for path in (records / "exec", records / "home", self.folder / "empty"):
            await asyncio.to_thread(path.mkdir, parents=True, exist_ok=True, mode=0o700)
        label = f"{MADE_LABEL}={self._made(folder)}"
        made = await self._do("run", "--label", label, *self._arguments(name, folder), seconds=PULL_SECONDS)
        if made.code:
            await self._do("rm", "-f", name)
            why = _reason(made.err.decode(errors="replace"))
            hint = "Another program, such as podman, is named by `terminal.docker.command`." if "daemon" in why else ""
            quoted = Quoted(text=why, origin=Origin.TOOL)
            raise PlaceFailed(f"The container of {self.settings.image} could not be made:", hint=hint, quoted=quoted)

    async def reap(self) -> None:
        """Remove containers of this home that stopped, or that nobody used for `idle_hours`."""
        label = f"label={HOME_LABEL}={short_hash(str(self.folder))}"
        found = await self._do("ps", "-a", "--filter", label, "--format", "{{.Names}} {{.Status}}")
        for line in found.out.decode().splitlines():
            name, _, status = line.partition(" ")
            if not status.startswith(("Up", "running")) or await asyncio.to_thread(self._is_idle, name):
                await self._do("rm", "-f", name)
                (self.folder / "used" / name).unlink(missing_ok=True)

    def _made(self, folder: str) -> str:
        """The same for containers that are made alike."""
        return short_hash(repr((self.settings, self.walls, folder)))

    def _is_idle(self, name: str) -> bool:
        now = self.folder / "used" / ".now"
        now.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        now.touch()
        try:
            idle = now.stat().st_mtime - (now.parent / name).stat().st_mtime
        except FileNotFoundError:
            return True
        return idle > self.settings.idle_hours * 3600

    def _arguments(self, name: str, folder: str) -> list[str]:
        settings, walls = self.settings, self.walls
        limits = {
            "--pids-limit": f"{settings.processes}",
            "--memory": f"{settings.memory_mb}m",
            "--memory-swap": f"{settings.memory_mb}m",
            "--cpus": f"{settings.cpus:g}",
            "--shm-size": f"{settings.tmp_mb}m",
            "--network": "bridge" if walls.network else "none",
        }
        owner = f"{os.getuid()}:{os.getgid()}"
        return [
            *("-d", "--name", name, "--label", f"{HOME_LABEL}={short_hash(str(self.folder))}", "--user", owner),
            *("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only", "-w", folder),
            *(word for item in limits.items() for word in item),
            *(word for capability in settings.capabilities for word in ("--cap-add", capability)),
            *(word for bound in _ulimits() for word in ("--ulimit", bound)),
            *(word for path in PRIVATE for word in ("--tmpfs", f"{path}:rw,exec,nosuid,nodev,size={settings.tmp_mb}m")),
            *self._mounts(folder),
            *(["--userns", "keep-id"] if self._maps_users else []),
            *("-e", f"HOME={RECORDS}/home", *settings.arguments),
            *("--entrypoint", "sh", settings.image, "-c", WAITS),
        ]

    def _mounts(self, folder: str) -> Iterator[str]:
        """What is open of this machine; what is hidden in it is covered."""
        opened = [folder, *self.walls.writable]
        for path in opened:
            if ":" in path:
                raise PlaceFailed(f"{path} cannot be shown in a container: its name holds a colon.")
            yield from ("-v", f"{path}:{path}")
        yield from ("-v", f"{self.folder / 'records'}:{RECORDS}")
        for path in map(os.path.realpath, self.walls.closed):
            if any(path == root or path.startswith(f"{root}/") for root in opened):
                if Path(path).is_dir():
                    yield from ("-v", f"{self.folder / 'empty'}:{path}:ro")  # a tmpfs would come before its parent
                elif Path(path).exists():
                    yield from ("-v", f"/dev/null:{path}:ro")

    @property
    def _maps_users(self) -> bool:
        """podman without root maps its own user 0; with this the person's number is the same inside and outside."""
        return Path(self.program[0]).name == "podman" and os.geteuid() != 0

    async def _do(self, *arguments: str, seconds: float = 60.0) -> Finished:
        return await run_to_end([*self.program, *arguments], self.env, seconds)


def _reason(said: str) -> str:
    """The last line that does not only point to the manual."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(("Run '", "See '"))]
    return lines[-1] if lines else "no reason was given"


def _ulimits() -> Iterator[str]:
    """No more than this process may have: asking for more needs a right that root may lack too."""
    for name, number, most in (
        ("nofile", resource.RLIMIT_NOFILE, MOST_FILES),
        ("nproc", resource.RLIMIT_NPROC, MOST_PROCESSES),
    ):
        hard = resource.getrlimit(number)[1]
        if hard != resource.RLIM_INFINITY:
            bound = min(hard, most)
            yield f"{name}={bound}:{bound}"


def build(
    folder: Path, settings: ContainerSettings, walls: Walls, env: Mapping[str, str], told: Mapping[str, str]
) -> RemotePlace:
    """Build the place from what a `Maker` needs. Raises `PlaceFailed` where there is neither docker nor podman."""
    program = list(settings.command) or [_found()]
    maker = Maker(program=program, folder=folder, settings=settings, walls=walls, env=env, told=told)

    async def begin(path: str) -> Container:
        if not ways.open:
            spawn(maker.reap(), name="unused containers")
        await maker.make(maker.name_of(path), path)
        return Container(maker, path)

    ways = FolderWays(folder / "groups", begin)
    return RemotePlace("docker", ways)


def _found() -> str:
    found = shutil.which("docker") or shutil.which("podman")
    if found is None:
        raise PlaceFailed("There is neither docker nor podman here: install one, or set `terminal.place` to local.")
    return found


class Container(Renewed):
    """Connection into one container, which is recreated when gone; implements `Transport`."""

    kind = "container"
    records = f"{RECORDS}/exec"

    def __init__(self, maker: Maker, folder: str) -> None:
        super().__init__(folder, maker.told)
        self._maker = maker
        self._name = maker.name_of(folder)

    async def call(self, arguments: Sequence[str], data: bytes = b"") -> Call:
        maker = self._maker
        await asyncio.to_thread(maker.touch, self._name)
        return await program_call([*maker.program, "exec", "-i", self._name, *words(arguments)], maker.env, data)

    async def why_gone(self) -> str:
        """Whether it stopped, or has no room for another process."""
        state = await self._maker.state(self._name, self.folder)
        if state != "running":
            return f"stopped ({state})"
        if await self._maker.has_room(self._name):
            return ""
        most = self._maker.settings.processes
        return f"had no room for another process for {FULL_SECONDS} s (`terminal.docker.processes`: {most})"

    async def renew(self) -> None:
        """Create it, unless another process has."""
        await self._maker.make(self._name, self.folder, is_full=True)
