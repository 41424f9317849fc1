"""What one side changed reaches the other, once; and nothing that anybody wrote is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.sync.here import Rules
from hermes_agent.sandbox.sync.there import FETCH, HASH, SCAN, SEND
from tests.sandbox.sync.local_shell import Sides, files


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return Sides(tmp_path)


@pytest.fixture
async def alike(sides: Sides) -> Sides:
    """Both have the same three files, and that is known."""
    for name, text in {"a.txt": "a", "src/b.py": "b", "src/c d.py": "c"}.items():
        (sides.here / name).parent.mkdir(exist_ok=True)
        (sides.here / name).write_text(text)
    await sides.sync.up()
    await sides.sync.down()
    sides.shell.scripts.clear()
    return sides


async def test_the_first_time_everything_goes_there(alike: Sides) -> None:
    assert files(alike.there) == files(alike.here) == {"a.txt": "a", "src/b.py": "b", "src/c d.py": "c"}


async def test_where_nothing_changed_nobody_is_asked(alike: Sides) -> None:
    await alike.sync.up()

    assert alike.shell.scripts == []


async def test_only_what_changed_here_goes_there(alike: Sides) -> None:
    before = (alike.there / "a.txt").stat()
    (alike.here / "src/b.py").write_text("B")
    (alike.here / "new").write_text("n")
    (alike.here / "src/c d.py").unlink()

    assert await alike.sync.up() == ()
    assert files(alike.there) == {"a.txt": "a", "new": "n", "src/b.py": "B"}
    assert (alike.there / "a.txt").stat().st_ino == before.st_ino


async def test_only_what_changed_there_comes_here(alike: Sides) -> None:
    before = (alike.here / "a.txt").stat()
    (alike.there / "src/b.py").write_text("B")
    (alike.there / "out/deep").mkdir(parents=True)
    (alike.there / "out/deep/new").write_text("n")
    (alike.there / "src/c d.py").unlink()

    assert await alike.sync.down() == ()
    assert files(alike.here) == {"a.txt": "a", "out/deep/new": "n", "src/b.py": "B"}
    assert (alike.here / "a.txt").stat() == before
    assert await alike.sync.up() == ()
    assert files(alike.there) == files(alike.here)


async def test_a_change_of_the_same_length_in_the_same_second_is_seen(alike: Sides) -> None:
    (alike.there / "a.txt").write_text("x")
    await alike.sync.down()
    (alike.there / "a.txt").write_text("y")
    await alike.sync.down()
    (alike.here / "a.txt").write_text("z")
    await alike.sync.up()

    assert files(alike.there)["a.txt"] == "z"


async def test_what_was_touched_and_holds_the_same_is_not_copied(alike: Sides) -> None:
    (alike.here / "a.txt").write_text("a")
    os.utime(alike.here / "a.txt", (1, 1))
    os.utime(alike.there / "src/b.py", (1, 1))

    await alike.sync.up()
    await alike.sync.down()

    assert SEND not in alike.shell.scripts
    assert FETCH not in alike.shell.scripts


async def test_a_program_stays_one_on_both_ways(alike: Sides) -> None:
    (alike.here / "a.txt").chmod(0o755)
    await alike.sync.up()
    (alike.there / "src/b.py").chmod(0o755)
    await alike.sync.down()

    assert os.access(alike.there / "a.txt", os.X_OK)
    assert os.access(alike.here / "src/b.py", os.X_OK)
    assert not os.access(alike.here / "src/c d.py", os.X_OK)


async def test_a_file_that_both_changed_is_kept_twice(alike: Sides) -> None:
    (alike.here / "a.txt").write_text("mine")
    (alike.there / "a.txt").write_text("theirs")

    (note,) = await alike.sync.down()

    assert "Changed on both sides: a.txt" in note
    assert files(alike.here) | {"a.txt": "mine", ".theirs/a.txt": "theirs"} == files(alike.here)
    assert await alike.sync.up() == ()
    assert files(alike.there)["a.txt"] == "mine"
    assert ".theirs/a.txt" not in files(alike.there)


async def test_what_changed_there_unseen_is_kept_before_ours_goes_over_it(alike: Sides) -> None:
    (alike.here / "a.txt").write_text("mine")
    (alike.there / "a.txt").write_text("theirs")

    (note,) = await alike.sync.up()

    assert "Changed on both sides: a.txt" in note
    assert files(alike.here)[".theirs/a.txt"] == "theirs"
    assert files(alike.there)["a.txt"] == "mine"


async def test_what_both_changed_alike_is_no_clash(alike: Sides) -> None:
    (alike.here / "a.txt").write_text("same")
    (alike.there / "a.txt").write_text("same")

    assert await alike.sync.down() == ()
    assert await alike.sync.up() == ()
    assert not (alike.here / ".theirs").exists()


async def test_a_file_removed_on_one_side_and_changed_on_the_other_stays(alike: Sides) -> None:
    (alike.here / "a.txt").unlink()
    (alike.there / "a.txt").write_text("theirs")
    (alike.here / "src/b.py").write_text("mine")
    (alike.there / "src/b.py").unlink()

    await alike.sync.up()
    await alike.sync.down()

    assert files(alike.here) == files(alike.there) == {"a.txt": "theirs", "src/b.py": "mine", "src/c d.py": "c"}


async def test_when_suddenly_most_is_gone_there_nothing_is_removed_here(alike: Sides) -> None:
    for number in range(30):
        (alike.here / f"{number}.txt").write_text(str(number))
    await alike.sync.up()
    before = files(alike.here)
    for number in range(30):
        (alike.there / f"{number}.txt").unlink()

    (note,) = await alike.sync.down()

    assert "30 files are gone there" in note
    assert files(alike.here) == before
    await alike.sync.up()
    assert files(alike.there) == before


async def test_a_folder_that_is_gone_there_takes_nothing_with_it(alike: Sides) -> None:
    before = files(alike.here)
    alike.there.rename(alike.there.with_name("moved"))

    (note,) = await alike.sync.down()

    assert "is gone there" in note
    assert files(alike.here) == before
    await alike.sync.up()
    assert files(alike.there) == before


async def test_another_process_knows_what_was_alike(alike: Sides) -> None:
    (alike.there / "a.txt").unlink()

    await alike.again().down()

    assert "a.txt" not in files(alike.here)


async def test_a_state_that_cannot_be_read_loses_nothing(alike: Sides) -> None:
    alike.state.write_text("{")
    (alike.there / "a.txt").write_text("theirs")
    (alike.there / "src/b.py").unlink()

    await alike.again().down()

    assert files(alike.here) == {"a.txt": "a", ".theirs/a.txt": "theirs", "src/b.py": "b", "src/c d.py": "c"}


async def test_a_way_that_breaks_while_sending_is_gone_on_with(alike: Sides) -> None:
    (alike.here / "a.txt").write_text("A longer text")
    alike.shell.breaks = SEND
    with pytest.raises(PlaceFailed, match="broke"):
        await alike.sync.up()
    (alike.there / "a.txt").write_text("A lon")  # half of it had arrived
    alike.shell.breaks = ""

    assert await alike.again().up() == ()
    assert files(alike.there)["a.txt"] == "A longer text"


async def test_keys_repositories_and_what_is_excluded_stay_where_they_are(tmp_path: Path) -> None:
    sides = Sides(tmp_path, Rules(exclude=("node_modules", "*.log", "docs/build")))
    for name in (".git/config", ".env", "my.pem", "node_modules/m.js", "x.log", "docs/build/i", "docs/a", "sub/.env"):
        (sides.here / name).parent.mkdir(parents=True, exist_ok=True)
        (sides.here / name).write_text("here")

    await sides.sync.up()
    assert files(sides.there) == {"docs/a": "here"}
    for name in (".git/config", ".git/hooks/pre-commit", ".env", "y.log", "docs/build/i", "node_modules/n/o.js"):
        (sides.there / name).parent.mkdir(parents=True, exist_ok=True)
        (sides.there / name).write_text("there")
    before = files(sides.here)
    await sides.sync.down()

    assert files(sides.here) == before


async def test_what_is_too_large_is_told_and_left_alone(tmp_path: Path) -> None:
    sides = Sides(tmp_path, Rules(max_bytes=100))
    (sides.here / "big").write_text("x" * 101)
    (sides.here / "small").write_text("x")
    (note,) = await sides.sync.up()
    (sides.there / "small").write_text("y" * 101)
    (sides.there / "new").write_text("n")
    (back,) = await sides.sync.down()

    assert note == "Too large to be copied there: big."
    assert back == "Too large to be copied here: small."
    assert files(sides.here) == {"big": "x" * 101, "new": "n", "small": "x"}


async def test_too_many_files_are_not_begun_with(tmp_path: Path) -> None:
    sides = Sides(tmp_path, Rules(max_files=2))
    for number in range(3):
        (sides.here / str(number)).write_text("x")

    with pytest.raises(PlaceFailed, match="more than 2 files"):
        await sides.sync.up()
    assert sides.shell.scripts == []


async def test_too_many_files_there_are_not_taken(tmp_path: Path) -> None:
    sides = Sides(tmp_path, Rules(max_files=2))
    sides.there.mkdir()
    for number in range(3):
        (sides.there / str(number)).write_text("x")

    with pytest.raises(PlaceFailed, match="more than 2 files"):
        await sides.sync.down()
    assert files(sides.here) == {}


async def test_links_are_neither_copied_nor_written_through(alike: Sides, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (alike.here / "link").symlink_to("a.txt")
    (alike.here / "out").symlink_to(outside)
    (alike.there / "out").mkdir()
    (alike.there / "out/evil").write_text("x")
    (alike.there / "link").write_text("x")

    await alike.sync.up()
    (note,) = await alike.sync.down()

    assert "a link or the disk is in the way: link, out/evil" in note
    assert list(outside.iterdir()) == []
    assert (alike.here / "a.txt").read_text() == "a"


async def test_odd_names_go_both_ways(sides: Sides) -> None:
    names = ["back\\slash", "-dash", 'qu"ote', "ünï", " lead", "$(touch x)", "a'b"]
    for name in names:
        (sides.here / name).write_text(name)
    await sides.sync.up()
    await sides.sync.down()
    for name in names:
        (sides.there / name).write_text(f"{name} again")
    await sides.sync.down()

    assert files(sides.here) == {name: f"{name} again" for name in names}


async def test_names_that_are_no_text_or_hold_line_ends_are_told(sides: Sides) -> None:
    sides.there.mkdir()
    for folder in (sides.here, sides.there):
        (folder / "two\nlines").write_text("x")
        (folder / os.fsdecode(b"\xff")).write_text("x")
    (sides.here / "plain").write_text("x")

    (note,) = await sides.sync.up()

    assert "two\nlines" in note
    assert await sides.sync.down() == ()


async def test_a_thousand_files_take_a_handful_of_calls(sides: Sides) -> None:
    for number in range(1200):
        (sides.here / f"{number}").write_text(str(number))
    await sides.sync.up()
    await sides.sync.down()

    assert len(files(sides.there)) == 1200
    assert sides.shell.scripts == [HASH, SEND, SEND, SEND, SCAN, HASH]
