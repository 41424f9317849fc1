"""`hermes memory`."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from tests.cli.shell import Said, typed


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home/memories").mkdir(parents=True)
    (tmp_path / "home/memories/MEMORY.md").write_text("The build is make.\n")
    return tmp_path / "home"


def memory(home: Path, *words: str) -> Said:
    return typed(home, "memory", *words)


def editor(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(program))
    monkeypatch.delenv("VISUAL", raising=False)


def test_the_notes_are_shown_with_how_full_they_are(home: Path) -> None:
    out = memory(home, "show").out

    assert out.startswith("MEMORY.md: 1 entry, 18 of 2,200 characters\n  1. The build is make.\n")
    assert json.loads(memory(home, "show", "--json").out)[0]["entries"] == ["The build is make."]


def test_an_edit_is_in_the_ledger_and_can_be_taken_back(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(home.parent, 'printf "§\\nMine\\n" >> "$1"', monkeypatch)

    assert "version 2" in memory(home, "edit").out
    lines = json.loads(memory(home, "log", "--json").out)
    assert [(line["author"], line["action"]) for line in lines] == [("owner", "edit"), ("owner", "edit by hand")]
    assert lines[0]["diff"] == ["+§", "+Mine"]
    assert "Version 2 of MEMORY.md is undone" in memory(home, "undo").out

    assert (home / "memories/MEMORY.md").read_text() == "The build is make.\n"
    assert "undo of 2" in memory(home, "log").out


def test_an_edit_that_was_overtaken_is_kept_aside(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(home.parent, f'echo theirs > {home}/memories/MEMORY.md; echo mine > "$1"', monkeypatch)

    with pytest.raises(click.ClickException, match="Your text is kept in"):
        memory(home, "edit")

    assert (home / "cache/edit.MEMORY.md").read_text() == "mine\n"
    assert (home / "memories/MEMORY.md").read_text() == "theirs\n"


def test_an_edit_over_the_limit_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(home.parent, 'head -c 3000 /dev/zero | tr "\\0" x > "$1"', monkeypatch)

    assert "the agent is shown 1,375" in memory(home, "edit", "user").err


def test_an_empty_log_says_so(tmp_path: Path) -> None:
    assert memory(tmp_path, "log").err == "There are no notes yet.\n"
