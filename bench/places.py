"""What a command costs in each place, beside the bare thing: `sh -c true`, `podman exec`, an SSH command."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import asyncssh

from bench.figures import Figure
from hermes_agent.app.places import make_place
from hermes_agent.host.paths import Home
from hermes_agent.sandbox.backends.docker import build as build_docker
from hermes_agent.sandbox.backends.ssh import build as build_ssh
from hermes_agent.sandbox.jail import CannotJail, jail_of
from hermes_agent.sandbox.place import Place
from hermes_agent.sandbox.settings import ContainerSettings
from hermes_agent.sandbox.walls import Walls
from hermes_agent.tools.schema import collect
from hermes_agent.tools.settings import TerminalSettings
from hermes_agent.tools.shell import ShellTools
from tests.sandbox.podman import ARGUMENTS, IMAGE, NoPodman, podman, remove_containers
from tests.sandbox.sshd import NoServer, server
from tests.tools.bench import Bench

TIMES, FAR_TIMES = 100, 20
PAUSE_SECONDS = 0.03
Call = Callable[[], Awaitable[object]]
JAILS: Mapping[Literal["bubblewrap", "landlock"], float] = {"bubblewrap": 8, "landlock": 3}
"""The kinds of jail, and how many milliseconds each may add."""


def measure() -> list[Figure]:
    """The figures of this module; a place that this machine has not is left out."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        return asyncio.run(_measure(Path(folder)))


async def _measure(folder: Path) -> list[Figure]:
    return [*await _near(folder), *await _container(folder), *await _machine(folder)]


async def _near(folder: Path) -> list[Figure]:
    here = _local(folder, "none")
    bare, plain = await _beside(_bare, _true(here, folder / "a"), TIMES)
    figures = [Figure(name="terminal `true`, this machine", value=plain, floor=bare, unit="ms", limit=3)]
    for kind, most in JAILS.items():
        try:
            jail_of(kind, Walls())
        except CannotJail:
            continue
        inside = _local(folder, kind)
        floor, jailed = await _beside(_true(here, folder / f"b{kind}"), _true(inside, folder / kind), TIMES)
        await inside.close()
        figures.append(Figure(name=f"jailed by {kind} adds", value=jailed - floor, unit="ms", limit=most))
    await here.close()
    return figures


async def _container(folder: Path) -> list[Figure]:
    try:
        command = podman()
    except NoPodman:
        return []
    settings = ContainerSettings(image=IMAGE, command=command, arguments=ARGUMENTS)
    place = build_docker(folder / "docker", settings, Walls(), dict(os.environ), {})
    call = _true(place, folder / "container")
    await call()
    name = next((folder / "docker" / "used").glob("hermes-*")).name
    bare = _program([*command, "exec", "-i", name, "sh", "-c", "true"])
    floor, value = await _beside(bare, call, FAR_TIMES)
    remove_containers()
    return [Figure(name=f"a warm container adds (to {floor:.0f} ms)", value=value - floor, unit="ms", limit=30)]


async def _machine(folder: Path) -> list[Figure]:
    try:
        settings = server()
    except NoServer:
        return []
    place = build_ssh(folder, replace(settings, sync=False), Walls(), {}, {}, home=str(folder / "account"))
    there = replace(settings, folder=str(folder / "there"))
    copying = build_ssh(folder / "kept", there, Walls(), {}, {}, home=str(folder / "account"))
    call, with_files = _true(place, folder / "machine"), _true(copying, folder / "files")
    for number in range(1000):
        (folder / "files" / f"{number}.txt").write_text(str(number))
    await call()
    await with_files()
    connection = await asyncssh.connect(
        settings.host,
        port=settings.port,
        username=settings.user,
        client_keys=[settings.key],
        known_hosts=settings.known_hosts,
    )
    floor, value = await _beside(lambda: connection.run("true"), call, FAR_TIMES)
    alone, copied = await _beside(call, with_files, FAR_TIMES)
    connection.close()
    await place.close()
    await copying.close()
    return [
        Figure(name=f"a warm SSH command adds (to {floor:.0f} ms)", value=value - floor, unit="ms", limit=30),
        Figure(name="looking for what changed of 1,000 files adds", value=copied - alone, unit="ms", limit=50),
    ]


def _local(folder: Path, jail: Literal["bubblewrap", "landlock", "none"]) -> Place:
    """As a person has it by default, with its network watched."""
    home = Home(root=folder / f"home-{jail}", base=folder / f"home-{jail}")
    return make_place(home, TerminalSettings(jail=jail), os.environ)


def _true(place: Place, workspace: Path) -> Call:
    """The tool itself, as the loop calls it."""
    workspace.mkdir()
    tools, _ = collect([ShellTools(place=place, settings=TerminalSettings())])
    bench = Bench(tools, workspace, session=workspace.name)
    return lambda: bench.answer("terminal", {"command": "true"})


async def _bare() -> None:
    await asyncio.to_thread(subprocess.run, ["sh", "-c", "true"], stdin=subprocess.DEVNULL, capture_output=True)


def _program(argv: list[str]) -> Call:
    return lambda: asyncio.to_thread(subprocess.run, argv, stdin=subprocess.DEVNULL, capture_output=True)


async def _beside(floor: Call, value: Call, times: int) -> tuple[float, float]:
    """Medians in milliseconds, taken turn by turn. Before each there is a pause, far shorter than the one between two
    calls of a model, so that neither is timed beside what the other left to be done."""
    floors, values = [], []
    for _ in range(times):
        for call, taken in ((floor, floors), (value, values)):
            await asyncio.sleep(PAUSE_SECONDS)
            taken.append(await _timed(call))
    return statistics.median(floors), statistics.median(values)


async def _timed(call: Call) -> float:
    began = time.perf_counter()
    await call()
    return (time.perf_counter() - began) * 1000
