"""A record made ready is given once, and whoever finds none makes their own."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.sandbox.spare import FILES, Spare


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_is_given_once(tmp_path: Path) -> None:
    spare, first, second = Spare(tmp_path), tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    spare.make()
    spare.make()
    spare.give(first)
    spare.give(second)

    assert names(first) == sorted(FILES)
    assert names(second) == []


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    spare = Spare(tmp_path)
    spare.make()
    spare.give(tmp_path / "a")

    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "a").iterdir()} == {0o600}


def test_where_it_cannot_be_made_or_is_gone_nothing_is_given(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    Spare(tmp_path / "file").make()
    spare = Spare(tmp_path)
    spare.make()
    for made in tmp_path.glob(".spare.*"):
        for path in made.iterdir():
            path.unlink()
    (tmp_path / "a").mkdir()
    spare.give(tmp_path / "a")

    assert names(tmp_path / "a") == []


def test_what_was_left_by_a_program_that_was_killed_goes_too(tmp_path: Path) -> None:
    (tmp_path / ".spare.4194400.dead").mkdir()
    other, spare = Spare(tmp_path), Spare(tmp_path)
    other.make()
    spare.make()
    spare.drop()

    assert len(names(tmp_path)) == 1
    (tmp_path / "a").mkdir()
    spare.give(tmp_path / "a")
    other.give(tmp_path / "a")
    assert names(tmp_path / "a") == sorted(FILES)
