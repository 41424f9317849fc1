"""Commands behind a wall and outside it: what each sees, keeps, and leaves to the other."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hermes_agent.sandbox.jail import CannotJail, jail_of, jail_or_none
from hermes_agent.sandbox.landlock import Thin, build
from hermes_agent.sandbox.piped import WalledPlace
from hermes_agent.sandbox.place import Command, Ended, Place
from hermes_agent.sandbox.walls import Walls

SECRET = "sk-very-secret"
LEFT = "cd sub; export COLOUR=red PATH=/evil:$PATH; touch() { echo hooked; }; export -f touch"


@pytest.fixture(params=["bubblewrap", "landlock"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> WalledPlace:
    try:
        jail_of(request.param, Walls())
    except CannotJail as reason:
        pytest.skip(f"no {request.param} here: {reason}")
    return walled(tmp_path, request.param)


def walled(folder: Path, kind: str) -> WalledPlace:
    for name in ("home/skills", "work/sub", "elsewhere", "me"):
        (folder / name).mkdir(parents=True)
    (folder / "home" / ".env").write_text(SECRET)
    (folder / "elsewhere" / "file").write_text("seen")
    shown = Walls(
        closed=(f"{folder}/home",),
        workspaces=f"{folder}/home/workspace",
        person=f"{folder}/me",
        caches=f"{folder}/home/cache/walls",
    )
    env = {"PATH": os.environ["PATH"], "HOME": f"{folder}/me"}
    thin = partial(Thin, replace(shown, readable=(), writable=("/",)))
    return WalledPlace(folder=folder / "home" / "cache", env=env, jail=partial(jail_or_none, kind, shown), thin=thin)


async def run(place: Place, name: str, text: str, folder: Path, *, outside: bool = False) -> tuple[Ended, str]:
    command = Command(text=text, folder=str(folder / "work"), shell="g", outside=outside)
    running = await place.start(f"g/{name}", command)
    ended = await running.wait()
    return ended, (await running.read(0, 10_000)).decode()


async def test_an_outside_command_sees_all_but_the_home(place: WalledPlace, tmp_path: Path) -> None:
    try:
        build(Walls(network=True))
    except CannotJail:
        pytest.skip("no Landlock here: nothing holds an outside command")
    text = f"cat {tmp_path}/elsewhere/file; echo x >{tmp_path}/elsewhere/new; cat {tmp_path}/home/.env"
    text += f"; cd {tmp_path}/home; echo y >skills/s; mv .env ../elsewhere; ln -s / l"

    _, inside = await run(place, "a", text, tmp_path)
    assert "seen" not in inside
    assert not (tmp_path / "elsewhere" / "new").exists()
    _, output = await run(place, "b", text, tmp_path, outside=True)

    assert output.startswith("seen")
    assert (tmp_path / "elsewhere" / "new").exists()
    assert SECRET not in output
    assert {path.name for path in (tmp_path / "home").iterdir()} == {".env", "skills", "cache"}
    assert not list((tmp_path / "home" / "skills").iterdir())


async def test_what_a_jailed_command_left_in_its_shell_is_never_read_outside(
    place: WalledPlace, tmp_path: Path
) -> None:
    await run(
        place, "a", "cd sub; export COLOUR=red PATH=/evil:$PATH; touch() { echo hooked; }; export -f touch", tmp_path
    )

    _, output = await run(place, "b", 'pwd; echo "${COLOUR-none} $PATH"; touch x', tmp_path, outside=True)
    _, after = await run(place, "c", "pwd; echo $COLOUR", tmp_path)

    assert output == f"{tmp_path}/work/sub\nnone {os.environ['PATH']}\n"
    assert (tmp_path / "work" / "sub" / "x").exists()
    assert after == f"{tmp_path}/work/sub\nred\n"


async def test_an_outside_command_works_in_a_workspace_of_the_home(place: WalledPlace, tmp_path: Path) -> None:
    work = tmp_path / "home" / "workspace"
    (work / "deep").mkdir(parents=True)
    command = Command(text="echo x >new; cat new ../../.env", folder=str(work), workdir="deep", outside=True)

    running = await place.start("g/a", command)
    await running.wait()

    output = (await running.read(0, 1000)).decode()
    assert output.startswith("x\n")
    assert SECRET not in output
    assert (work / "deep" / "new").exists()


async def test_both_are_found_again_and_listed(place: WalledPlace, tmp_path: Path) -> None:
    await run(place, "a", "exit 3", tmp_path)
    await run(place, "b", "exit 4", tmp_path, outside=True)
    before = await place.location(str(tmp_path))

    again = [await place.attach(f"g/{name}") for name in ("a", "b", "none")]

    assert [(await each.wait()).code if each else None for each in again] == [3, 4, None]
    assert await place.location("") == before
    assert await place.prune(-1, 0) == 2
    assert await place.location("") != before
    assert await place.attach("g/b") is None
    await place.close()


async def test_caches_are_those_of_the_workspace(place: WalledPlace, tmp_path: Path) -> None:
    _, output = await run(place, "a", 'echo x >"$PIP_CACHE_DIR.x" && echo $CARGO_HOME; echo $HOME', tmp_path)

    caches = list((tmp_path / "home" / "cache" / "walls").iterdir())
    assert [path.name for path in caches[0].iterdir()] == ["pip.x"]
    assert output.startswith(f"{caches[0]}/cargo\n")


async def test_it_names_its_wall(place: WalledPlace, tmp_path: Path) -> None:
    assert place.wall() in ("bubblewrap", "landlock")
    assert (await run(place, "a", "true", tmp_path))[0].code == 0


async def test_where_no_wall_can_be_had_all_run_without_and_it_says_so(tmp_path: Path) -> None:
    place = walled(tmp_path, "none")

    _, output = await run(place, "a", f"cat {tmp_path}/elsewhere/file", tmp_path)

    assert (place.wall(), output) == ("", "seen")
    assert (tmp_path / "home" / "cache" / "exec" / "g" / "a").is_dir()
