"""A change on top of another one."""

import stat
from pathlib import Path

import pytest

from hermes_agent.skills.changes import NEW, OLD, SWAP, Conflict, mend, rebased, swap_folder
from tests.skills.shelf import put, skill_text

BASE = b"".join(b"line %d\n" % number for number in range(12))


def test_what_nothing_else_changed_is_the_target_to_the_byte():
    assert rebased(b"\xff", b"\xff", b"\xfe") == b"\xfe"
    assert rebased(None, None, b"a") == b"a"


def test_two_changes_at_different_places_are_both_kept():
    current, target = (
        BASE.replace(b"line 11", b"mine"),
        BASE.replace(b"line 1\n", b"better\n").replace(b"line 5\n", b""),
    )
    joined = rebased(current, BASE, target)
    assert joined == target.replace(b"line 11", b"mine")


@pytest.mark.parametrize(
    ("current", "base", "target"),
    [
        (None, BASE, b"x"),
        (BASE, None, b"x"),
        (BASE + b"x", BASE, None),
        (b"\xff", b"a", b"b"),
        (BASE.replace(b"line 5", b"mine"), BASE, BASE.replace(b"line 5", b"theirs")),
    ],
)
def test_what_does_not_fit_is_a_conflict(current, base, target):
    with pytest.raises(Conflict):
        rebased(current, base, target)


def test_several_files_change_at_once(tmp_path: Path):
    folder = put(tmp_path, "cooking/tea")
    (folder / "scripts").mkdir()
    (folder / "scripts/boil.sh").write_text("old")
    (folder / "scripts/boil.sh").chmod(0o755)
    (folder / ".notes").write_text("mine")
    changes = {"scripts/boil.sh": b"new", "references/a.md": b"A", "SKILL.md": None, "none": None}
    swap_folder(tmp_path, folder, changes, "act")

    assert (folder / "scripts/boil.sh").read_text() == "new"
    assert stat.S_IMODE((folder / "scripts/boil.sh").stat().st_mode) == 0o700
    assert ((folder / ".notes").read_text(), (folder / "SKILL.md").exists()) == ("mine", False)
    assert list((tmp_path / SWAP).iterdir()) == []


def test_a_new_folder_comes_as_a_whole(tmp_path: Path):
    swap_folder(tmp_path, tmp_path / "tea", {"SKILL.md": b"x", "run": b"y"}, "act", {"run"})
    assert stat.S_IMODE((tmp_path / "tea/run").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "tea/SKILL.md").stat().st_mode) == 0o600


def test_what_was_taken_away_and_not_replaced_is_put_back(tmp_path: Path):
    aside = put(tmp_path / SWAP / "act" / OLD / "cooking", "tea")
    put(aside / "templates", "inner")
    put(tmp_path / SWAP / "act", NEW)
    mend(tmp_path)

    assert (tmp_path / "cooking/tea/SKILL.md").read_text() == skill_text("tea")
    assert (tmp_path / "cooking/tea/templates/inner/SKILL.md").is_file()
    assert list((tmp_path / SWAP).iterdir()) == []


def test_what_was_replaced_stays_replaced(tmp_path: Path):
    put(tmp_path / SWAP / "act" / OLD, "tea", body="Old.")
    put(tmp_path, "tea", body="New.")
    mend(tmp_path)
    mend(tmp_path / "nothing")
    assert (tmp_path / "tea/SKILL.md").read_text() == skill_text("tea", body="New.")
