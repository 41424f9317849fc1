"""`hermes skills`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.skills.library import NoSkill
from tests.cli.shell import Said, typed
from tests.skills.shelf import put, skill_text


@pytest.fixture
def home(tmp_path: Path) -> Path:
    put(tmp_path / "home/skills", "tea", "Makes tea.", "Boil !`date`")
    return tmp_path / "home"


def skills(home: Path, *words: str) -> Said:
    return typed(home, "skills", *words)


def names(home: Path) -> list[str]:
    return [row["name"] for row in json.loads(skills(home, "list", "--json").out)]


def test_skills_are_listed_with_whose_they_are(home: Path) -> None:
    (home / "skills/broken").mkdir()
    (home / "skills/broken/SKILL.md").write_text("nothing")
    rows = {row["name"]: row for row in json.loads(skills(home, "list", "--json").out)}

    assert (rows["tea"]["layer"], rows["tea"]["owner"]) == ("user", "user")
    assert rows["commit-message"]["owner"] == "bundled"
    assert "does not begin with frontmatter" in skills(home, "list").err
    assert all(len(line) < 80 or line.endswith("…") for line in skills(home, "list").out.splitlines()[1:])


def test_a_skill_is_shown_with_its_commands_and_what_it_hides(home: Path) -> None:
    put(home / "skills", "code-review")
    assert skills(home, "show", "tea").out == skill_text("tea", "Makes tea.", "Boil !`date`")
    assert "Runs where it is trusted: date" in skills(home, "show", "tea").err
    assert "It hides another of that name" in skills(home, "show", "code-review").err


def test_a_change_by_hand_is_in_the_history_and_can_be_taken_back(home: Path) -> None:
    first = json.loads(skills(home, "history", "tea", "--json").out)[0]["version"]
    (home / "skills/tea/SKILL.md").write_text(skill_text("tea", "Makes tea.", "Pour."))

    assert "+Pour." in skills(home, "diff", "tea").out
    assert "-Pour." in skills(home, "revert", "tea", first).out
    assert (home / "skills/tea/SKILL.md").read_text() == skill_text("tea", "Makes tea.", "Boil !`date`")
    assert "already" in skills(home, "revert", "tea", first).out
    assert len(json.loads(skills(home, "history", "tea", "--json").out)) == 3
    assert "changed outside" in skills(home, "history", "tea").out


def test_pins_and_trust_are_kept_and_taken_off(home: Path) -> None:
    assert "pinned" in skills(home, "pin", "tea").out
    assert "tea *" in skills(home, "list").out
    skills(home, "unpin", "tea")
    assert "tea *" not in skills(home, "list").out
    assert skills(home, "trust", "tea").out == "`tea` may now run: date\n"
    assert "no longer" in skills(home, "untrust", "tea").out


def test_a_skill_is_put_aside_and_brought_back(home: Path) -> None:
    for name in ("tea", "code-review"):
        skills(home, "archive", name)
        assert name not in names(home)
        skills(home, "restore", name)
        assert name in names(home)


def test_use_is_counted(home: Path) -> None:
    assert skills(home, "stats").err == "No skill was used yet.\n"
    used = {"tea": {"views": 2, "uses": 1, "patches": 0, "last": 1.0}}
    (home / "skills/.usage.json").write_text(json.dumps(used))
    assert json.loads(skills(home, "stats", "--json").out) == [{"name": "tea", **used["tea"]}]
    assert "tea" in skills(home, "stats").out


def test_what_is_not_there_is_told(home: Path) -> None:
    with pytest.raises(NoSkill, match="no skill `teas`"):
        skills(home, "show", "teas")
    with pytest.raises(HermesError, match="no such version"):
        skills(home, "diff", "tea", "99")


def test_an_edit_in_the_owners_editor_is_theirs(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho Pour. >>"$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)

    assert "version" in skills(home, "edit", "tea").out
    assert "edit" in skills(home, "history", "tea").out.splitlines()[1]
    assert "owner" in skills(home, "history", "tea").out.splitlines()[1]
    assert "Pour." in skills(home, "show", "tea").out
    editor.write_text("#!/bin/sh\ntrue\n")
    assert skills(home, "edit", "tea").out == "`tea` is as it was.\n"
