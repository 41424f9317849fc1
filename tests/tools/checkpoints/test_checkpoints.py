"""Checkpoints keep how files were, apart from the project's own repository, and every restore can be undone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_agent.app.operations.checkpoints import restore_report
from hermes_agent.host import process
from hermes_agent.testing.clock import FakeClock
from hermes_agent.tools.checkpoints.checkpoints import Cause, Checkpoints, changed_in
from hermes_agent.tools.checkpoints.shadow import CheckpointFailed
from hermes_agent.tools.settings import CheckpointSettings
from tests.tools.checkpoints.project import TOLD, files


async def test_files_come_back_as_they_were_and_new_ones_go(kept: Checkpoints, root: Path):
    before = files(root)
    taken = await kept.save(root, TOLD)
    (root / "a.txt").write_text("two\n")
    (root / "src/b.py").unlink()
    (root / "new").mkdir()
    (root / "new/c.txt").write_text("three\n")

    done = await kept.restore(root, taken.number)

    assert files(root) == before
    assert not (root / "new").exists()
    assert (done.written, done.removed) == (("a.txt", "src/b.py"), ("new/c.txt",))


async def test_a_restore_is_undone_by_the_checkpoint_that_it_took(kept: Checkpoints, root: Path):
    taken = await kept.save(root, TOLD)
    (root / "a.txt").write_text("two\n")
    (root / "c.txt").write_text("three\n")
    after = files(root)

    done = await kept.restore(root, taken.number)
    await kept.restore(root, done.undo.number)

    assert files(root) == after


async def test_one_file_alone_is_put_back(kept: Checkpoints, root: Path):
    taken = await kept.save(root, TOLD)
    (root / "a.txt").write_text("two\n")
    (root / "src/b.py").write_text("x = 2\n")

    await kept.restore(root, taken.number, "src/b.py")

    assert files(root) == {"a.txt": "two\n", "src/b.py": "x = 1\n"}


async def test_the_difference_is_shown_of_all_or_of_one_file(kept: Checkpoints, root: Path):
    taken = await kept.save(root, TOLD)
    (root / "a.txt").write_text("two\n")
    (root / "new.txt").write_text("n\n")

    assert "-one\n+two" in await kept.diff(root, taken.number)
    assert "new.txt" in await kept.diff(root, taken.number)
    assert "new.txt" not in await kept.diff(root, taken.number, "a.txt")


async def test_where_nothing_changed_the_last_one_stands(kept: Checkpoints, root: Path):
    first = await kept.save(root, TOLD)

    assert await kept.save(root, TOLD) == first
    (root / "a.txt").write_text("two\n")
    second = await kept.save(root, Cause(why="terminal: make", session="s2"))
    assert [each.number for each in await kept.of(root)] == [second.number, first.number] == [2, 1]
    assert (await kept.of(root))[0].told.why == "terminal: make"


async def test_a_projects_own_repository_is_not_touched(kept: Checkpoints, root: Path):
    await process.run(["git", "init", "-q", str(root)], env={"PATH": os.defpath, "HOME": str(root.parent)})
    (root / ".gitattributes").write_text("* text eol=crlf\n")
    own = {str(path): path.stat().st_mtime_ns for path in (root / ".git").rglob("*")}

    taken = await kept.save(root, TOLD)
    (root / "a.txt").write_text("two\n")
    await kept.restore(root, taken.number)

    assert {str(path): path.stat().st_mtime_ns for path in (root / ".git").rglob("*")} == own
    assert (root / "a.txt").read_bytes() == b"one\n"


async def test_what_is_made_again_ignored_or_too_large_is_left_out_and_left_alone(tmp_path: Path, root: Path):
    kept = Checkpoints(tmp_path / "c", CheckpointSettings(max_file_mb=1), FakeClock())
    (root / "node_modules").mkdir()
    (root / "node_modules/m.js").write_text("m")
    (root / ".gitignore").write_text("*.log\n")
    (root / "x.log").write_text("log")
    (root / "big").write_bytes(bytes(2 << 20))
    taken = await kept.save(root, TOLD)
    for name in ("node_modules/m.js", "x.log", "big"):
        (root / name).write_text("changed")

    done = await kept.restore(root, taken.number)

    assert done.written == ()
    assert (root / "x.log").read_text() == "changed"
    assert (root / "node_modules/m.js").read_text() == "changed"


async def test_a_file_that_is_about_to_be_changed_is_kept_though_ignored(kept: Checkpoints, root: Path):
    (root / ".gitignore").write_text("*.log\n")
    (root / "x.log").write_text("log")
    taken = await kept.save(root, TOLD, [root / "x.log", root / "new.log"])
    (root / "x.log").write_text("changed")
    (root / "new.log").write_text("new")

    done = await kept.restore(root, taken.number)

    assert files(root)["x.log"] == "log"
    assert done.removed == ("new.log",)


async def test_of_a_folder_with_too_many_files_only_those_about_to_be_changed_are_kept(tmp_path: Path, root: Path):
    kept = Checkpoints(tmp_path / "c", CheckpointSettings(max_files=1), FakeClock())
    taken = await kept.save(root, TOLD, [root / "a.txt"])
    (root / "a.txt").write_text("two\n")
    (root / "other.txt").write_text("mine\n")

    done = await kept.restore(root, taken.number)

    assert not taken.told.whole
    assert (done.written, done.removed) == (("a.txt",), ())
    assert (root / "other.txt").exists()


async def test_modes_links_and_odd_names_come_back(kept: Checkpoints, root: Path):
    odd = os.fsdecode(b"od\nd \xff \xc3\xa4.txt")
    (root / odd).write_text("odd\n")
    (root / "link").symlink_to("a.txt")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    taken = await kept.save(root, TOLD)
    for name in (odd, "link", "run.sh"):
        (root / name).unlink()

    await kept.restore(root, taken.number)

    assert (root / odd).read_text() == "odd\n"
    assert (root / "link").readlink() == Path("a.txt")
    assert os.access(root / "run.sh", os.X_OK)


async def test_nothing_is_written_or_removed_through_a_link_that_leads_out(
    kept: Checkpoints, root: Path, tmp_path: Path
):
    taken = await kept.save(root, TOLD)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/b.py").write_text("not mine\n")
    (root / "src/b.py").unlink()
    (root / "src").rmdir()
    (root / "src").symlink_to(tmp_path / "outside")

    await kept.restore(root, taken.number)

    assert (tmp_path / "outside/b.py").read_text() == "not mine\n"
    assert (root / "src/b.py").read_text() == "x = 1\n"


async def test_older_ones_are_forgotten(kept: Checkpoints, root: Path):
    for number in range(5):
        (root / "a.txt").write_text(f"{number}\n")
        await kept.save(root, TOLD)

    assert await kept.prune(root, 2) == 3
    assert [each.number for each in await kept.of(root)] == [5, 4]
    await kept.restore(root, 4)
    assert (root / "a.txt").read_text() == "3\n"


async def test_the_size_is_kept_within_its_limit(tmp_path: Path, root: Path):
    kept = Checkpoints(tmp_path / "c", CheckpointSettings(max_mb=10), FakeClock())
    for _ in range(4):
        (root / "noise").write_bytes(os.urandom(5 << 20))
        await kept.save(root, TOLD)

    await kept.prune(root)

    assert len(await kept.of(root)) == 1
    assert sum(path.stat().st_size for path in (tmp_path / "c").rglob("*") if path.is_file()) < 10 << 20


async def test_folders_are_listed_and_forgotten(kept: Checkpoints, root: Path):
    assert (await kept.roots(), await kept.of(root), await kept.prune(root)) == ([], [], 0)
    await kept.save(root, TOLD)

    assert await kept.roots() == [root]
    await kept.forget(root)
    assert await kept.roots() == []


@pytest.mark.parametrize(
    ("number", "file", "words"),
    [(9, "", "no checkpoint 9; there are 1 to 1"), (1, "../x", "not below"), (1, "none", "not in checkpoint 1")],
)
async def test_what_is_not_there_is_said(kept: Checkpoints, root: Path, number: int, file: str, words: str):
    await kept.save(root, TOLD)

    with pytest.raises(CheckpointFailed, match=words):
        await kept.restore(root, number, file)


async def test_a_folder_without_checkpoints_says_so(kept: Checkpoints, root: Path):
    with pytest.raises(CheckpointFailed, match="There are no checkpoints of"):
        await kept.find(root, 1)


async def test_without_git_it_is_said(tmp_path: Path, root: Path):
    kept = Checkpoints(tmp_path / "c", CheckpointSettings(), FakeClock(), git="no-such-git")

    with pytest.raises(CheckpointFailed, match="need git, which is not installed"):
        await kept.save(root, TOLD)


async def test_a_folder_with_files_that_no_checkpoint_has_is_not_replaced_by_a_file(kept: Checkpoints, root: Path):
    (root / "data").write_text("a file")
    first = await kept.save(root, Cause(why="one"))
    (root / "data").unlink()
    (root / "data").mkdir()
    (root / "data/large").write_bytes(b"x" * (kept._settings.max_file_mb + 1 << 20))

    with pytest.raises(CheckpointFailed, match="data was a file and is a folder now"):
        await kept.restore(root, first.number)
    assert (root / "data/large").exists()
    (root / "data/large").unlink()
    await kept.restore(root, first.number)
    assert (root / "data").read_text() == "a file"


async def test_what_has_grown_too_large_for_the_checkpoint_that_undoes_it_is_left_and_named(tmp_path: Path, root: Path):
    kept = Checkpoints(tmp_path / "c", CheckpointSettings(max_file_mb=1), FakeClock())
    first = await kept.save(root, TOLD)
    (root / "a.txt").write_text("two\n")
    (root / "new.txt").write_text("new\n")
    await kept.save(root, TOLD)
    for name in ("a.txt", "new.txt"):
        (root / name).write_bytes(b"x" * (2 << 20))

    done = await kept.restore(root, first.number)

    assert (done.written, done.removed, set(done.left)) == ((), (), {"a.txt", "new.txt"})
    assert (root / "a.txt").stat().st_size == (root / "new.txt").stat().st_size == 2 << 20
    assert "a.txt (left as it is" in restore_report(done, first.number)


async def test_a_checkpoint_of_some_files_holds_and_restores_no_other(tmp_path: Path, root: Path):
    kept = Checkpoints(tmp_path / "c", CheckpointSettings(), FakeClock())
    (root / "mine.txt").write_text("as it was\n")
    await kept.save(root, TOLD)
    (root / "mine.txt").write_text("changed by hand\n")
    taken = await kept.save(root, Cause(why="write_file", whole=False), [root / "a.txt"])
    (root / "a.txt").write_text("two\n")

    assert changed_in(await kept.diff(root, taken.number)) == ["a.txt"]
    done = await kept.restore(root, taken.number)

    assert (done.written, done.removed) == (("a.txt",), ())
    assert (root / "mine.txt").read_text() == "changed by hand\n"


async def test_a_diff_warns_of_a_file_that_runs_later_below_an_odd_name(kept: Checkpoints, root: Path):
    taken = await kept.save(root, TOLD)
    (root / 'a"b').mkdir()
    (root / 'a"b/Makefile').write_text("all:\n")

    assert (await kept.diff(root, taken.number)).startswith("Runs later, outside the wall: ")
