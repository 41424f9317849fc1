"""`kill -9` at any moment of installing, updating and uninstalling: a skill is there as a whole or not at all."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.skills.depot import files_of_folder, hash_of_files
from hermes_agent.skills.library import NoSkill
from hermes_agent.store.versions import Kind, VersionState
from tests.children import SOURCE
from tests.skills.hub.origin import OWNER, VARIABLES, Place, hub_at, origin

KILLS = 12
SEED = 2
FILES = ("scripts/one.sh", "scripts/two.sh", "references/three.md", "references/four.md")


@pytest.mark.timeout(180)
async def test_a_kill_leaves_nothing_half_installed(tmp_path: Path):
    there = origin(tmp_path / "origin")
    for version in ("a", "b"):
        there.skill("tea", f"1. Boil.\n2. Wait.\n3. Wait.\n4. Serve {version}.", **dict.fromkeys(FILES, version))
        there.git("tag", version)
    chance, seen = random.Random(SEED), set()

    for _ in range(KILLS):
        killed(tmp_path, chance.randrange(3), chance.uniform(0.0, 0.5))
        async with hub_at(tmp_path) as place:
            seen.add(await state_of(place))
            async with place.hub.alone():
                pass
            assert not (place.hub.home / ".hub/quarantine").exists()
            assert not list((place.hub.home / ".swap").glob("*"))
            await place.hub.writer.notice("tea")
            last = {item: await latest(place, item) for item in await place.hub.writer.versions.items("tea")}
            assert VersionState.INTENDED not in last.values()

    assert len(seen) > 1, "every kill came at the same moment"
    async with hub_at(tmp_path) as place:
        async with place.hub.alone():
            if "tea" in place.hub.lock.get().skills:
                await place.hub.uninstall("tea", OWNER)
        assert (await place.install("tea", ref="b")).ref == "refs/tags/b"
        assert "Serve b" in await place.text("tea")


def killed(root: Path, steps: int, seconds: float) -> None:
    """Let the program take so many steps and work for so long, then kill it."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.programs.hub_user", str(root)],
        cwd=SOURCE.parent,
        env={**VARIABLES, "PYTHONPATH": f"{SOURCE}:{SOURCE.parent}"},
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    for _ in range(1 + steps):
        assert child.stdout.readline() == b"ready\n"
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(seconds)
    child.kill()
    child.wait()
    child.stdout.close()


async def state_of(place: Place) -> tuple[str, str]:
    """What a session would see now; every skill that it sees is whole, and is what the lock says."""
    locked = place.hub.lock.get()
    for name, entry in locked.skills.items():
        assert hash_of_files(place.hub.depot.files(entry.hash, name)) == entry.hash
    try:
        card = await place.library.find("tea")
    except NoSkill:
        assert "tea" not in locked.skills
        return ("none", "")
    files = {name: each.content.decode() for name, each in files_of_folder(card.path).items()}
    assert sorted(files) == sorted(("SKILL.md", *FILES))
    versions = {files[name] for name in FILES}
    assert len(versions) == 1
    assert f"Serve {versions.pop()}." in files["SKILL.md"]
    return (card.layer.value, files[FILES[0]])


async def latest(place: Place, item: str) -> VersionState | None:
    found = await place.hub.writer.versions.store.versions.latest(Kind.SKILL, item)
    return found.state if found else None
