"""Containers: nothing leads out of one, and one that died is made anew once and told of."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.sandbox.backends.docker import Maker, build
from hermes_agent.sandbox.place import Command, PlaceFailed
from hermes_agent.sandbox.remote_place import RemotePlace
from hermes_agent.sandbox.settings import ContainerSettings
from hermes_agent.sandbox.walls import Walls
from tests.sandbox.escapes import BOMB, listening
from tests.sandbox.podman import ARGUMENTS, IMAGE, NoPodman, podman, remove_containers


def arguments(folder: Path, settings: ContainerSettings | None = None, walls: Walls | None = None) -> str:
    settings, walls = settings or ContainerSettings(), walls or Walls()
    maker = Maker(program=["docker"], folder=folder, settings=settings, walls=walls, env={}, told={})
    return " ".join(maker._arguments("name", str(folder / "work")))


def test_everything_is_closed_at_first(tmp_path: Path):
    said = arguments(tmp_path)

    for closed in ("--cap-drop ALL", "no-new-privileges", "--read-only", "--network none", "--pids-limit 512"):
        assert closed in said
    assert "--cap-add" not in said


def test_what_is_named_is_open(tmp_path: Path):
    settings = ContainerSettings(capabilities=("NET_RAW",), arguments=("--gpus", "all"))

    said = arguments(tmp_path, settings, Walls(network=True, writable=("/data",)))

    for opened in ("--cap-add NET_RAW", "--network bridge", "-v /data:/data", "--gpus all"):
        assert opened in said


def test_what_is_hidden_in_the_workspace_is_covered(tmp_path: Path):
    (tmp_path / "work" / ".ssh").mkdir(parents=True)
    (tmp_path / "work" / ".netrc").touch()
    hidden = (str(tmp_path / "work" / ".ssh"), str(tmp_path / "work" / ".netrc"), "/etc/shadow")

    said = arguments(tmp_path, walls=Walls(closed=hidden))

    assert f"-v {tmp_path}/empty:{tmp_path}/work/.ssh:ro" in said
    assert f"-v /dev/null:{tmp_path}/work/.netrc:ro" in said
    assert "shadow" not in said


def test_a_folder_that_no_container_can_be_shown_is_refused(tmp_path: Path):
    with pytest.raises(PlaceFailed, match="colon"):
        arguments(tmp_path, walls=Walls(writable=("/a:b",)))


FULL = "while :; do sleep 600 & done"


class Box:
    """A container place on one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        self.count = 0
        self.command = Command(text="true", folder=str(self.work), shell="g")

    def place(self, **changes: object) -> RemotePlace:
        settings = ContainerSettings(image=IMAGE, command=podman(), arguments=ARGUMENTS, processes=60, tmp_mb=4)
        walls = Walls(closed=(str(self.work / "home"),))
        return build(self.folder / "docker", replace(settings, **changes), walls, dict(os.environ), {"TERM": "dumb"})

    async def __call__(self, place: RemotePlace, text: str) -> tuple[int | None, str]:
        self.count += 1
        running = await place.start(f"g/{self.count}", replace(self.command, text=text))
        ended = await running.wait()
        return ended.code, (await running.read(0, 1 << 16)).decode(errors="replace")


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    try:
        podman()
    except NoPodman as reason:
        pytest.skip(f"no containers here: {reason}")
    yield Box(tmp_path)
    remove_containers()


def containers() -> list[str]:
    listed = subprocess.run([*podman(), "ps", "-a", "--format", "{{.ID}}"], capture_output=True, check=True)
    return listed.stdout.decode().split()


def kill(which: list[str]) -> None:
    subprocess.run([*podman(), "kill", *which], capture_output=True, check=True)


async def test_files_outside_the_workspace_are_neither_seen_nor_written(box: Box) -> None:
    (box.work / "home").mkdir()
    (box.work / "home" / ".env").write_text("KEY=sk-secret\n")
    (box.folder / "other").write_text("sk-other")
    text = (
        f"echo a >here; cat home/.env {box.folder}/other; echo b >/etc/no; echo c >/usr/no; echo d >{box.folder}/no; :"
    )

    _, output = await box(box.place(), text)

    assert (box.work / "here").read_text() == "a\n"
    assert "sk-" not in output
    assert not any(map(os.path.exists, ("/etc/no", "/usr/no", box.folder / "no")))


async def test_a_loopback_port_of_the_machine_is_out_of_reach(box: Box) -> None:
    with listening() as (port, reached):
        code, _ = await box(box.place(), f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo GET >&3")

    assert code != 0
    assert reached == []


async def test_a_fork_bomb_is_bounded(box: Box) -> None:
    place = box.place()
    _, output = await box(place, BOMB)

    assert int(output.split()[-1]) <= 60, output
    with suppress(PlaceFailed):  # It was full, and was made anew.
        await box(place, "true")
    assert await box(place, "echo on") == (0, "on\n")


async def test_the_folders_in_memory_are_small_and_the_rest_is_read_only(box: Box) -> None:
    place = box.place()
    text = (
        "for f in /tmp /var/tmp /run /dev/shm; do head -c 9000000 /dev/zero >$f/full && echo filled $f; done; echo done"
    )

    _, output = await box(place, text)

    assert output.endswith("done\n")
    assert "filled" not in output


async def test_no_capability_is_there_and_the_supervisor_is_safe(box: Box) -> None:
    text = (
        "grep -E 'CapEff|NoNewPrivs' /proc/self/status; mount -t tmpfs none /mnt; mknod sda b 8 0; kill -9 1; echo on"
    )

    _, output = await box(box.place(), text)

    assert "CapEff:\t0000000000000000" in output
    assert "NoNewPrivs:\t1" in output
    assert not (box.work / "sda").exists()
    assert output.endswith("on\n")


async def test_a_container_that_died_is_made_anew_and_what_was_lost_is_told(box: Box) -> None:
    place = box.place()
    await box(place, "cd /usr; export A=1; echo kept >kept.txt; echo kept >/tmp/gone")
    server = await place.start("g/server", replace(box.command, text="sleep 60", background=True))
    kill(containers())

    with pytest.raises(PlaceFailed, match=r"was made anew. Lost: whatever ran in it, and files outside of"):
        await box(place, "true")

    assert await box(place, "pwd; echo $A; cat /tmp/gone || echo gone") == (
        0,
        "/usr\n1\ncat: /tmp/gone: No such file or directory\ngone\n",
    )
    ended = await server.poll()
    assert ended is not None
    assert ended.code is None


async def test_a_container_that_dies_again_at_once_is_not_made_a_third_time(box: Box) -> None:
    place = box.place()
    await box(place, "true")
    for said in ("was made anew", "again, right after"):
        kill(containers())
        with pytest.raises(PlaceFailed, match=said):
            await box(place, "true")


async def test_containers_that_stopped_are_removed_and_others_left(box: Box) -> None:
    place = box.place()
    await box(place, "true")
    (mine,) = containers()
    (box.folder / "second").mkdir()
    other = await place.start("h/1", Command(text="true", folder=str(box.folder / "second")))
    await other.wait()
    kill([mine])

    again = await box.place().start("h/2", Command(text="true", folder=str(box.folder / "second")))
    await again.wait()

    async with asyncio.timeout(20):
        while mine in containers():
            await asyncio.sleep(0.05)
    assert len(containers()) == 1


async def test_an_image_that_is_not_there_is_a_sentence(box: Box) -> None:
    with pytest.raises(PlaceFailed, match="could not be made"):
        await box(box.place(image="localhost/no-such-image:1"), "true")


def test_without_a_program_nothing_is_made(tmp_path: Path) -> None:
    place = build(tmp_path, ContainerSettings(command=("/no/such/docker",)), Walls(), {}, {})

    assert place.name == "docker"
    assert list(tmp_path.iterdir()) == []


async def test_a_program_that_cannot_work_is_told_in_its_own_words_with_a_way_out(tmp_path: Path) -> None:
    double = tmp_path / "docker"
    double.write_text(
        "#!/bin/sh\nprintf \"docker: Is the docker daemon running?\\n\\nRun 'docker run --help'\\n\" >&2\nexit 125\n"
    )
    double.chmod(0o755)
    place = build(tmp_path / "kept", ContainerSettings(command=(str(double),)), Walls(), {}, {})

    with pytest.raises(PlaceFailed, match="Is the docker daemon running") as failed:
        await place.start("g/a", Command(text="true", folder=str(tmp_path)))

    assert "terminal.docker.command" in failed.value.hint


async def test_a_container_without_room_for_another_process_is_made_anew_and_told_of(box: Box) -> None:
    place = box.place()
    bomb = await place.start("g/bomb", replace(box.command, text=f"echo begun; {FULL}", background=True, limit=60))
    async with asyncio.timeout(20):
        while b"fork" not in await bomb_said(box):
            await asyncio.sleep(0.1)
    before = containers()

    with pytest.raises(PlaceFailed) as caught:
        await box(place, "echo hello")

    assert str(caught.value).startswith(
        "The container had no room for another process for 5 s (`terminal.docker.processes`: 60) and was made anew. "
        f"Lost: whatever ran in it, and files outside of {box.work}."
    )
    assert "OCI" not in str(caught.value)
    assert await box(place, "echo hello") == (0, "hello\n")
    assert containers() != before
    assert (await bomb.wait()).code is None


async def bomb_said(box: Box) -> bytes:
    return await asyncio.to_thread((box.folder / "docker/records/exec/g/bomb/out").read_bytes)
