"""Programs that talk over pipes: they are fed, heard, and ended with all that they started."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes_agent.sandbox.jail import jail_or_none
from hermes_agent.sandbox.network import Network
from hermes_agent.sandbox.piped import ERRORS, LARGEST, PipedPrograms, Program
from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.walls import Walls


@asynccontextmanager
async def programs(tmp_path: Path) -> AsyncIterator[PipedPrograms]:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    walls = Walls(closed=(str(tmp_path / "home"),), caches=str(tmp_path / "home/caches"), person=str(tmp_path / "me"))
    made = PipedPrograms(
        folder=tmp_path / "home/records",
        env={"PATH": "/usr/bin:/bin"},
        jail=lambda: jail_or_none("auto", walls),
        network=Network(),
        redact=lambda text: text.replace("secret", "hidden"),
    )
    yield made
    await made.close()


def shell(tmp_path: Path, text: str) -> Program:
    return Program(name="p", argv=("sh", "-c", text), workspace=str(tmp_path / "work"))


def marked(tmp_path: Path) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"{tmp_path}/home/records/p#".encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


async def test_a_program_is_fed_and_heard_and_its_complaints_are_kept(tmp_path: Path):
    async with programs(tmp_path) as made:
        piped = await made.start(shell(tmp_path, "read x; echo got $x in $(pwd); echo oh >&2"))
        await piped.write(b"tea\n")

        said = b""
        while chunk := await piped.read():
            said += chunk
        await piped.close()

    assert said == f"got tea in {tmp_path}/work\n".encode()
    assert (tmp_path / "home/records/p" / ERRORS).read_text() == "oh\n"


async def test_it_ends_with_all_that_it_started(tmp_path: Path):
    async with programs(tmp_path) as made:
        piped = await made.start(shell(tmp_path, "trap '' TERM; sleep 60 & setsid sleep 60 & echo up; sleep 60"))
        assert await piped.read() == b"up\n"
        assert marked(tmp_path)
        began = asyncio.get_running_loop().time()

        await piped.close()

        assert asyncio.get_running_loop().time() - began < 2.5
        assert marked(tmp_path) == []
        assert not piped.is_alive


async def test_a_program_that_hears_the_end_of_its_input_ends_by_itself(tmp_path: Path):
    async with programs(tmp_path) as made:
        piped = await made.start(shell(tmp_path, "cat; echo bye > ended"))

        await piped.close()

    assert (tmp_path / "work/ended").read_text() == "bye\n"


async def test_what_is_closed_is_closed_to_it(tmp_path: Path):
    async with programs(tmp_path) as made:
        (tmp_path / "home/.env").write_text("KEY=1")
        piped = await made.start(shell(tmp_path, f"cat {tmp_path}/home/.env 2>/dev/null || echo no"))

        assert await piped.read() == b"no\n"
        await piped.close()


async def test_one_that_nobody_waits_for_any_more_is_ended(tmp_path: Path):
    async with programs(tmp_path) as made:
        starting = asyncio.get_running_loop().create_task(made.start(shell(tmp_path, "cat")))
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        async with asyncio.timeout(10):
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0.01)

    assert marked(tmp_path) == []


async def test_a_folder_that_holds_the_system_is_no_workspace(tmp_path: Path):
    async with programs(tmp_path) as made:
        with pytest.raises(PlaceFailed, match="holds the system"):
            await made.start(Program(name="p", argv=("true",), workspace="/"))


async def test_what_runs_behind_a_wall_alone_does_not_run_without_one(tmp_path: Path):
    made = PipedPrograms(folder=tmp_path / "records", env={"PATH": "/usr/bin:/bin"}, jail=lambda: None)
    (tmp_path / "work").mkdir()
    with pytest.raises(PlaceFailed, match="behind a wall alone, and there is none here"):
        await made.start(shell(tmp_path, "echo hi"), only=True)
    open_ = await made.start(shell(tmp_path, "echo hi"))

    assert await open_.read() == b"hi\n"
    await open_.close()
    await made.close()


@pytest.mark.parametrize("walled", [True, False])
async def test_a_program_that_complains_without_end_fills_no_disk_and_its_last_words_are_known(
    tmp_path: Path, walled: bool
):
    flood = "yes 'a secret word' | head -c 6000400 >&2; echo the last >&2; read x"
    async with programs(tmp_path) as made:
        piped = await made.start(shell(tmp_path, flood), walled=walled)
        async with asyncio.timeout(20):
            while piped.last_words != "the last":
                await asyncio.sleep(0.02)
        await piped.close()
    kept = sorted((tmp_path / "home/records/p").glob(f"{ERRORS}*"))

    assert [path.name for path in kept] == [ERRORS, f"{ERRORS}.1"]
    assert sum(path.stat().st_size for path in kept) <= 2 * LARGEST
    assert all("a secret word" not in path.read_text() for path in kept)
    assert kept[0].read_text().endswith("the last\n")


async def test_a_program_that_the_wall_hides_is_named_with_the_way_out(tmp_path: Path):
    program = tmp_path / "elsewhere" / "server"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    async with programs(tmp_path) as made:
        with pytest.raises(PlaceFailed, match=f"The wall hides {program}: .* `jail: false`"):
            await made.start(Program(name="p", argv=(str(program),), workspace=str(tmp_path / "work")))


async def test_what_the_wall_refused_is_known_once_a_program_has_ended(tmp_path: Path):
    text = "python3 -c \"import os, urllib.request as r; r.urlopen('http://10.1.2.3/')\"; exit 3"

    async with programs(tmp_path) as made:
        for _ in range(2):
            piped = await made.start(shell(tmp_path, text))
            await piped.ended(10)
            await piped.close()

            assert piped.code == 3
            assert piped.stopped == ("a connection to 10.1.2.3:80",)


async def test_no_part_of_a_secret_is_kept_where_a_line_is_cut(tmp_path: Path):
    long = "head -c 65530 /dev/zero | tr '\\0' x >&2; printf 'xx sec' >&2; sleep 0.3; printf 'ret ' >&2"
    ends = "head -c 195 /dev/zero | tr '\\0' y >&2; echo ' secret' >&2"
    async with programs(tmp_path) as made:
        piped = await made.start(shell(tmp_path, f"{long}; echo >&2; {ends}"))
        while await piped.read():
            pass
        await piped.close()
    kept = (tmp_path / "home/records/p" / ERRORS).read_text()

    assert " sec" not in kept
    assert kept.count("hidden") == 2
    assert piped.last_words.endswith("y hidd")
