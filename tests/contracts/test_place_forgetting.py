"""Every place forgets what nobody needs any more, and says where its records are kept, so that nobody takes one that is
missing for a command that never began."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.sandbox.place import Command, Place
from tests.contracts.places import MAKERS, remove_what_was_made
from tests.contracts.test_place import run


async def test_the_oldest_outputs_go_where_all_take_too_much(place: Place, plain: Command) -> None:
    for name in ("first", "second", "third"):
        await run(place, f"g/{name}", replace(plain, text="head -c 700000 /dev/zero; sleep 0.02"))
    running = await place.start(
        "g/running", replace(plain, text="head -c 3000000 /dev/zero; sleep 60", background=True)
    )

    assert await place.prune(60, 3) == 0
    assert await place.prune(60, 1) == 2

    assert await place.attach("g/first") is None
    assert await place.attach("g/second") is None
    assert await place.attach("g/third") is not None
    assert await running.poll() is None
    await running.kill()


async def test_every_process_finds_the_same_records_in_a_place(
    place: Place, make: Callable[[], Place], plain: Command
) -> None:
    before = await place.location(plain.folder)
    await run(place, "g/a", plain)

    assert await make().location(plain.folder) == before == await place.location(plain.folder)
    assert all((before.machine, before.place, before.boot))


async def test_records_that_were_forgotten_are_told_from_commands_that_never_began(
    place: Place, make: Callable[[], Place], plain: Command
) -> None:
    other = make()
    before = await place.location(plain.folder)
    assert await other.location(plain.folder) == before
    await run(place, "g/a", replace(plain, text="head -c 2000000 /dev/zero"))

    assert await place.prune(60, 3) == 0
    assert await place.location(plain.folder) == before
    assert await place.prune(60, 1) == 1

    for each in (place, other, make()):
        assert await each.attach("g/a") is None
        assert await each.location(plain.folder) != before


@pytest.mark.parametrize("kind", sorted(MAKERS))
async def test_another_home_is_another_location(kind: str, tmp_path: Path) -> None:
    found, places = [], []
    for name in ("one", "two"):
        (tmp_path / name / "work").mkdir(parents=True)
        places.append(MAKERS[kind](tmp_path / name))
        found.append(await places[-1].location(str(tmp_path / name / "work")))
    shutil.copytree(tmp_path / "one", tmp_path / "copy", symlinks=True, ignore=shutil.ignore_patterns("apptainer"))
    for each in places:
        await each.close()
    remove_what_was_made(kind)

    assert found[0] != found[1]
    if kind in ("local", "bubblewrap", "landlock"):
        assert await MAKERS[kind](tmp_path / "copy").location("/") not in found
