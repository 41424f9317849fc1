"""What is remembered from checkpoint to checkpoint, and what a killed process leaves, costs none of them."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.host import process
from hermes_agent.testing.clock import FakeClock
from hermes_agent.tools.checkpoints.checkpoints import Cause, Checkpoints
from hermes_agent.tools.checkpoints.shadow import INDEX, CheckpointFailed, ref, shadow_of
from hermes_agent.tools.settings import CheckpointSettings
from tests.tools.checkpoints.project import TOLD, files

TAKES = """
import asyncio, sys
from pathlib import Path
from hermes_agent.testing.clock import FakeClock
from hermes_agent.tools.checkpoints.checkpoints import Checkpoints, Cause
from hermes_agent.tools.settings import CheckpointSettings

async def main():
    kept = Checkpoints(Path(sys.argv[1]), CheckpointSettings(), FakeClock())
    number = 0
    while True:
        number += 1
        Path(sys.argv[2], "a.txt").write_text(f"{number}")
        await kept.save(Path(sys.argv[2]), Cause(why="x"))
        print(number, flush=True)

asyncio.run(main())
"""


def killed_while_taking(checkpoints: Path, root: Path) -> None:
    """Lets a process take checkpoints and kills it in the middle of the third or a later one."""
    child = subprocess.Popen(
        [sys.executable, "-c", TAKES, str(checkpoints), str(root)],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.defpath},
    )
    assert child.stdout is not None
    child.stdout.readline()
    child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.communicate()
    next(checkpoints.glob("*/objects")).with_name("index.lock").touch()


async def test_a_process_that_is_killed_in_the_middle_leaves_the_checkpoints_usable(tmp_path: Path, root: Path):
    kept = Checkpoints(tmp_path / "c", CheckpointSettings(), FakeClock())
    for _ in range(3):
        killed_while_taking(tmp_path / "c", root)

        (root / "a.txt").write_text("mine")
        taken = await kept.save(root, TOLD)
        (root / "a.txt").write_text("changed")
        await kept.restore(root, taken.number)
        assert (root / "a.txt").read_text() == "mine"


ODD = ['a "quoted" name', "back\\slash", "two\nlines", "sp ace", "ünï", "-dash", os.fsdecode(b"\xff\xfe")]


@pytest.fixture
def large(root: Path) -> Path:
    """A folder with more files than are taken in one by one, some with names that need care."""
    for number in range(150):
        (root / f"d{number % 40}").mkdir(exist_ok=True)
        (root / f"d{number % 40}" / f"{number}.txt").write_text(f"{number}\n")
    for name in ODD:
        (root / name).mkdir()
        (root / name / name).write_text(name.encode(errors="replace").decode())
    (root / "link").symlink_to("a.txt")
    (root / "a.txt").chmod(0o755)
    return root


def objects(kept: Checkpoints) -> list[Path]:
    return [path for path in kept.folder.rglob("objects/*/*") if path.suffix != ".idx"]


async def test_the_contents_of_a_large_folder_are_kept_in_one_file_and_come_back(kept: Checkpoints, large: Path):
    before = files(large)

    taken = await kept.save(large, TOLD)
    made = len(objects(kept))
    for name in before:
        (large / name).unlink()
    await kept.restore(large, taken.number)

    assert made < len(before) // 2
    assert files(large) == before
    assert (large / "link").readlink() == Path("a.txt")
    assert os.access(large / "a.txt", os.X_OK)


async def test_the_trees_that_are_packed_are_those_of_the_folder(kept: Checkpoints, large: Path):
    packed = await kept.save(large, TOLD)
    (large / "a.txt").write_text("two\n")
    (large / "d1/1.txt").unlink()
    later = await kept.save(large, TOLD)

    assert await kept.diff(large, later.number) == ""
    told = await kept.diff(large, packed.number)
    assert "-one\n+two" in told
    assert "d1/1.txt" in told
    assert told.count("diff --git") == 2


async def test_what_takes_the_place_of_something_else_is_kept_and_comes_back(kept: Checkpoints, root: Path):
    (root / "folder").mkdir()
    (root / "folder/x.txt").write_text("x\n")
    first = await kept.save(root, TOLD)
    (root / "a.txt").unlink()
    (root / "a.txt").mkdir()
    (root / "a.txt/in.txt").write_text("in\n")
    shutil.rmtree(root / "folder")
    (root / "folder").write_text("a file\n")
    shutil.rmtree(root / "src")
    (root / "src").symlink_to("a.txt")
    second, after = await kept.save(root, TOLD), files(root)

    await kept.restore(root, first.number)
    assert files(root) == {"a.txt": "one\n", "folder/x.txt": "x\n", "src/b.py": "x = 1\n"}
    await kept.restore(root, second.number)
    assert files(root) == after
    assert (root / "src").readlink() == Path("a.txt")


async def test_a_repository_in_the_folder_and_folders_that_are_made_again_are_left_out(kept: Checkpoints, root: Path):
    await process.run(["git", "init", "-q", str(root / "own")], env={"PATH": os.defpath, "HOME": str(root.parent)})
    (root / "own/o.txt").write_text("own\n")
    (root / "src/build").mkdir()
    (root / "src/build/made").write_text("made\n")
    (root / ".gitignore").write_text("!build/\n")
    taken = await kept.save(root, TOLD)
    (root / "own/o.txt").write_text("changed\n")
    (root / "src/build/made").write_text("changed\n")

    assert await kept.diff(root, taken.number) == ""
    assert await kept.save(root, TOLD) == taken


async def test_a_change_that_shows_in_no_time_and_no_size_is_seen(kept: Checkpoints, root: Path):
    found = (root / "a.txt").stat()
    await kept.save(root, TOLD)
    for content in ("two\n", "six\n"):
        (root / "a.txt").write_text(content)
        os.utime(root / "a.txt", ns=(found.st_atime_ns, found.st_mtime_ns))
        taken = await kept.save(root, TOLD)
        (root / "a.txt").write_text("x")
        await kept.restore(root, taken.number)
        assert (root / "a.txt").read_text() == content


async def test_a_forgotten_look_costs_nothing_but_reading_again(kept: Checkpoints, root: Path):
    first = await kept.save(root, TOLD)
    for lost in (b"", b"nonsense", None):
        seen = next(kept.folder.glob("*/seen"))
        seen.unlink()
        if lost is not None:
            seen.write_bytes(lost)
        seen.with_name("seen.index").unlink()

        assert await kept.save(root, TOLD) == first


async def test_a_killed_process_that_had_made_a_checkpoint_and_not_remembered_it_loses_none(kept, root: Path):
    await kept.save(root, TOLD)
    seen = next(kept.folder.glob("*/seen"))
    remembered = seen.read_bytes()
    (root / "a.txt").write_text("two\n")
    second = await kept.save(root, TOLD)
    seen.write_bytes(remembered)
    (root / "a.txt").write_text("three\n")

    third = await kept.save(root, TOLD)

    assert third.number == second.number + 1
    await kept.restore(root, second.number)
    assert (root / "a.txt").read_text() == "two\n"


async def test_checkpoints_of_an_earlier_version_go_on(kept: Checkpoints, root: Path):
    """They were packed by git, which kept an index, and remembered nothing."""
    await kept.save(root, TOLD)
    shadow = shadow_of(root, kept.folder, "git")
    await shadow.run("pack-refs", "--all", "--prune")
    for name in ("seen", "seen.index"):
        (shadow.folder / name).unlink()
    (shadow.folder / "index").touch()
    shutil.rmtree(shadow.folder / "refs")
    (shadow.folder / "refs").mkdir()
    assert (await kept.save(root, TOLD)).number == 1
    (root / "a.txt").write_text("two\n")

    assert (await kept.save(root, TOLD)).number == 2
    await kept.restore(root, 1)
    assert (root / "a.txt").read_text() == "one\n"


async def test_all_forgotten_and_begun_again_is_whole(kept: Checkpoints, root: Path):
    await kept.save(root, TOLD)
    await kept.prune(root, 0)

    taken = await kept.save(root, TOLD)
    (root / "a.txt").unlink()
    await kept.restore(root, taken.number)

    assert files(root) == {"a.txt": "one\n", "src/b.py": "x = 1\n"}


async def test_a_folder_that_is_not_there_yet_comes_back_to_nothing(kept: Checkpoints, tmp_path: Path):
    later = tmp_path / "later"
    taken = await kept.save(later, Cause(why="write_file"), [later / "x.txt"])
    later.mkdir()
    (later / "x.txt").write_text("x")

    done = await kept.restore(later, taken.number)

    assert done.removed == ("x.txt",)


async def test_what_cannot_be_read_stays_as_it_was_known(kept: Checkpoints, root: Path):
    (root / "pipe").touch()
    await kept.save(root, TOLD)
    (root / "pipe").unlink()
    os.mkfifo(root / "pipe")
    (root / "a.txt").write_text("two\n")

    taken = await kept.save(root, TOLD)

    assert "pipe" not in await kept.diff(root, taken.number)


async def test_two_processes_at_one_folder_take_turns(tmp_path: Path, root: Path):
    both = [Checkpoints(tmp_path / "c", CheckpointSettings(), FakeClock()) for _ in range(2)]

    async def change(kept: Checkpoints, name: str) -> None:
        for number in range(10):
            (root / name).write_text(f"{number}\n")
            await kept.save(root, TOLD)

    async with asyncio.TaskGroup() as group:
        group.create_task(change(both[0], "one"))
        group.create_task(change(both[1], "two"))

    numbers = [each.number for each in await both[0].of(root)]
    assert numbers == list(range(numbers[0], 0, -1))
    assert await both[0].diff(root, numbers[0]) == ""


async def test_a_store_that_cannot_be_written_is_told_in_a_sentence(kept: Checkpoints, root: Path):
    await kept.save(root, TOLD)
    objects = next(kept.folder.glob("*/objects"))
    objects.rename(objects.with_name("moved"))
    objects.touch()
    (root / "a.txt").write_text("two\n")

    with pytest.raises(CheckpointFailed, match=r"^git read-tree failed: fatal: not a git repository"):
        await kept.save(root, TOLD)


async def test_a_stop_comes_in_the_middle_of_a_large_folder_and_leaves_what_was_there(kept: Checkpoints, large: Path):
    first = await kept.save(large, TOLD)
    for number in range(3_000):
        (large / f"{number}").write_text("more")

    with pytest.raises(CheckpointFailed, match=r"^Checkpoints cannot be kept: it took too long\.$"):
        async with shadow_of(large, kept.folder, "git").turn(), asyncio.timeout(0.001):
            await kept._take(shadow_of(large, kept.folder, "git"), TOLD, ())

    assert [each.number for each in await kept.of(large)] == [first.number]
    assert (await kept.save(large, TOLD)).number == first.number + 1


async def test_a_damaged_index_is_made_again(kept: Checkpoints, root: Path):
    taken = await kept.save(root, TOLD)
    shadow = shadow_of(root, kept.folder, "git")
    (shadow.folder / INDEX).write_bytes(b"")
    (root / "a.txt").write_text("two\n")

    after = await kept.save(root, TOLD)
    done = await kept.restore(root, taken.number)

    assert after.number == taken.number + 1
    assert done.written == ("a.txt",)


async def test_what_a_killed_git_leaves_is_removed_and_stops_nobody(kept: Checkpoints, root: Path):
    taken = await kept.save(root, TOLD)
    folder = shadow_of(root, kept.folder, "git").folder
    pack = folder / "objects/pack/tmp_pack_4CQiRS"
    pack.write_bytes(b"half")
    (folder / f"{INDEX}.lock").touch()
    held = folder / f"{ref(taken.number)}.lock"
    held.touch()

    await kept.save(root, TOLD)

    assert not pack.exists()
    assert not held.exists()
    held.touch()
    assert await kept.prune(root, 0) == 1
