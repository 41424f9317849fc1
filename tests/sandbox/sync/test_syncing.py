"""What changed here is there before a command, and what the command changed is here after it; and nothing else."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.sync.sides import FETCH, MARK, SCAN, SEND, Rules
from tests.sandbox.sync.local_shell import ENDED, Sides, files


async def test_the_first_time_everything_goes_there(alike: Sides) -> None:
    assert files(alike.there) == files(alike.here) == {"a.txt": "a", "src/b.py": "b", "src/c d.py": "c"}


async def test_where_nothing_changed_there_is_looked_twice(alike: Sides) -> None:
    await alike.command()

    assert alike.shell.scripts == [SCAN, SCAN]


async def test_only_what_changed_here_goes_there(alike: Sides) -> None:
    before = (alike.there / "a.txt").stat()
    (alike.here / "src/b.py").write_text("B")
    (alike.here / "new").write_text("n")
    (alike.here / "src/c d.py").unlink()

    assert await alike.command() == ((), None)
    assert files(alike.there) == {"a.txt": "a", "new": "n", "src/b.py": "B"}
    assert (alike.there / "a.txt").stat().st_ino == before.st_ino


async def test_only_what_the_command_changed_comes_here(alike: Sides) -> None:
    before = (alike.here / "a.txt").stat()

    def act() -> None:
        (alike.there / "src/b.py").write_text("B")
        (alike.there / "out/deep").mkdir(parents=True)
        (alike.there / "out/deep/new").write_text("n")
        (alike.there / "src/c d.py").unlink()

    assert await alike.command(act) == ((), None)
    assert files(alike.here) == files(alike.there) == {"a.txt": "a", "out/deep/new": "n", "src/b.py": "B"}
    assert (alike.here / "a.txt").stat() == before


async def test_what_somebody_else_made_there_stays_there(alike: Sides) -> None:
    (alike.there / "theirs").write_text("t")

    assert await alike.command() == ((), None)
    assert "theirs" not in files(alike.here)


async def test_what_somebody_else_changed_there_is_kept_beside_and_a_command_finds_ours(alike: Sides) -> None:
    (alike.there / "a.txt").write_text("theirs")
    (alike.there / "src/b.py").unlink()
    seen: list[dict[str, str]] = []

    changed, gone = sorted((await alike.command(lambda: seen.append(files(alike.there))))[0])

    assert changed == (
        "Changed there, though not by a command here: ours was sent there, theirs is below .theirs/: a.txt."
    )
    assert gone == "Gone there though no command deleted it, and sent again: src/b.py."
    assert seen == [{"a.txt": "a", "src/b.py": "b", "src/c d.py": "c"}]
    assert files(alike.here) == {".theirs/a.txt": "theirs", **seen[0]}


async def test_a_change_of_the_same_length_in_the_same_moment_is_seen(alike: Sides) -> None:
    await alike.command(lambda: (alike.there / "a.txt").write_text("x"))
    await alike.command(lambda: (alike.there / "a.txt").write_text("y"))
    (alike.here / "a.txt").write_text("z")
    await alike.command()

    assert files(alike.there)["a.txt"] == "z"


async def test_what_a_command_touched_and_holds_the_same_is_not_written(alike: Sides) -> None:
    before = (alike.here / "src/b.py").stat()
    await alike.command(lambda: os.utime(alike.there / "src/b.py", (1, 1)))

    assert (alike.here / "src/b.py").stat() == before


async def test_a_program_stays_one_on_both_ways(alike: Sides) -> None:
    (alike.here / "a.txt").chmod(0o755)
    await alike.command(lambda: (alike.there / "src/b.py").chmod(0o755))

    assert os.access(alike.there / "a.txt", os.X_OK)
    assert os.access(alike.here / "src/b.py", os.X_OK)
    assert not os.access(alike.here / "src/c d.py", os.X_OK)


async def test_a_file_that_both_changed_is_kept_twice(alike: Sides) -> None:
    def act() -> None:
        (alike.here / "a.txt").write_text("mine")
        (alike.there / "a.txt").write_text("theirs")

    (note,), _ = await alike.command(act)

    assert note == "Changed on both sides, ours stays here and theirs is below .theirs/: a.txt."
    assert files(alike.here) | {"a.txt": "mine", ".theirs/a.txt": "theirs"} == files(alike.here)
    assert await alike.command() == ((), None)
    assert files(alike.there)["a.txt"] == "mine"
    assert ".theirs/a.txt" not in files(alike.there)


async def test_what_both_changed_alike_is_no_clash(alike: Sides) -> None:
    def act() -> None:
        (alike.here / "a.txt").write_text("same")
        (alike.there / "a.txt").write_text("same")

    assert await alike.command(act) == ((), None)
    assert await alike.command() == ((), None)
    assert not (alike.here / ".theirs").exists()


async def test_what_runs_on_may_change_files_until_it_has_ended(alike: Sides) -> None:
    await alike.sync.up("g/x")
    await alike.sync.down("g/x", replace(ENDED, children=True))
    (alike.there / "log").write_text("1")
    await alike.sync.up("g/y")
    assert files(alike.here)["log"] == "1"
    (alike.there / "log").write_text("12")
    await alike.sync.up("g/z", over=("g/x", "g/y"))

    assert files(alike.here)["log"] == "12"
    assert await alike.sync.begun() == ("g/z",)


async def test_a_file_that_is_written_here_while_theirs_arrives_stays(alike: Sides) -> None:
    alike.shell.before = lambda script: script == FETCH and (alike.here / "a.txt").write_text("mine")
    await alike.command(lambda: (alike.there / "a.txt").write_text("theirs"))

    assert (files(alike.here)["a.txt"], files(alike.here)[".theirs/a.txt"]) == ("mine", "theirs")


async def test_what_changes_there_right_after_it_was_sent_comes_back(alike: Sides) -> None:
    """As a formatter that watches does."""

    def format_it(script: str, out: bytes) -> bytes:
        if script == SEND:
            (alike.there / "a.txt").write_text("formatted")
        return out

    alike.shell.after = format_it
    (alike.here / "a.txt").write_text("mine")
    await alike.command()

    assert files(alike.here)["a.txt"] == "formatted"


async def test_keys_repositories_and_what_is_excluded_stay_where_they_are(tmp_path: Path) -> None:
    sides = Sides(tmp_path, Rules(exclude=("node_modules", "*.log", "docs/build")))
    for name in (".git/config", ".env", "my.pem", "node_modules/m.js", "x.log", "docs/build/i", "docs/a", "sub/.env"):
        (sides.here / name).parent.mkdir(parents=True, exist_ok=True)
        (sides.here / name).write_text("here")

    before = files(sides.here)

    def act() -> None:
        assert files(sides.there) == {"docs/a": "here"}
        for name in (".git/config", ".git/hooks/pre-commit", ".env", "y.log", "docs/build/i", "node_modules/n/o.js"):
            (sides.there / name).parent.mkdir(parents=True, exist_ok=True)
            (sides.there / name).write_text("there")

    await sides.command(act)

    assert files(sides.here) == before


async def test_what_is_too_large_is_told_and_left_alone(tmp_path: Path) -> None:
    sides = Sides(tmp_path, Rules(max_bytes=100))
    (sides.here / "big").write_text("x" * 101)
    (sides.here / "small").write_text("x")

    def act() -> None:
        (sides.there / "small").write_text("y" * 101)
        (sides.there / "big").write_text("not so big")
        (sides.there / "new").write_text("n")

    notes, _ = await sides.command(act)

    assert notes == (
        "Not copied there for its size or name: big.",
        "Not copied here for its size or name: small.",
        "Changed on both sides, ours stays here and theirs is below .theirs/: big.",
    )
    assert files(sides.here) == {".theirs/big": "not so big", "big": "x" * 101, "new": "n", "small": "x"}


async def test_too_many_files_are_not_begun_with(tmp_path: Path) -> None:
    sides = Sides(tmp_path, Rules(max_files=2))
    for number in range(3):
        (sides.here / str(number)).write_text("x")

    with pytest.raises(PlaceFailed, match="more than 2 files"):
        await sides.sync.up("g/x")
    assert files(sides.there) == {}


async def test_too_many_files_there_are_not_taken(tmp_path: Path) -> None:
    sides = Sides(tmp_path, Rules(max_files=2))

    with pytest.raises(PlaceFailed, match="more than 2 files"):
        await sides.command(lambda: [(sides.there / str(number)).write_text("x") for number in range(3)])
    assert files(sides.here) == {}


async def test_links_are_neither_copied_nor_written_through(alike: Sides, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (alike.here / "link").symlink_to("a.txt")
    (alike.here / "out").symlink_to(outside)

    def act() -> None:
        (alike.there / "out").mkdir()
        (alike.there / "out/evil").write_text("x")
        (alike.there / "link").write_text("x")

    clash, refused = (await alike.command(act))[0]

    assert clash == "Changed on both sides, ours stays here and theirs is below .theirs/: link."
    assert refused == "Not copied here, a link, the disk or a change of just now is in the way: out/evil."
    assert list(outside.iterdir()) == []
    assert (alike.here / "a.txt").read_text() == "a"


async def test_odd_names_go_both_ways(sides: Sides) -> None:
    names = ["back\\slash", "-dash", 'qu"ote', "ünï", " lead", "$(touch x)", "a'b", "cr\rname"]
    for name in names:
        (sides.here / name).write_text(name, newline="")
    await sides.command(lambda: [(sides.there / name).write_text(f"{name.strip()} again") for name in names])

    assert files(sides.here) == {name: f"{name} again".replace("\r", "\n").strip() for name in names}


async def test_names_that_are_no_text_or_hold_line_ends_are_told(sides: Sides) -> None:
    (sides.here / "two\nlines").write_text("x")
    (sides.here / os.fsdecode(b"\xff")).write_text("x")
    (sides.here / "plain").write_text("x")

    def act() -> None:
        (sides.there / "two\nlines").write_text("x")
        (sides.there / os.fsdecode(b"\xff")).write_text("x")

    (note,), _ = await sides.command(act)

    assert note == "Not copied there for its size or name: two?lines, ?."
    assert await sides.command() == ((), None)


async def test_a_thousand_files_take_a_handful_of_calls(sides: Sides) -> None:
    for number in range(1200):
        (sides.here / f"{number}").write_text(str(number))
    await sides.command()

    assert len(files(sides.there)) == 1200
    assert sides.shell.scripts == [SCAN, MARK, SCAN, SEND, SEND, SEND, SCAN, SCAN]
