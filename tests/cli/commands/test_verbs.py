"""The verbs of a noun on the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hermes_agent.app.operations.access import Noun
from hermes_agent.app.operations.approvals import ALLOWED
from hermes_agent.app.operations.learning import CURATED, LEARNED
from hermes_agent.app.operations.memory import FACTS, NOTES
from hermes_agent.cli.commands.verbs import group_of
from hermes_agent.core.errors import HermesError
from hermes_agent.skills.library import NoSkill
from tests.cli.shell import Said, typed
from tests.learning.curator.harness import Upkeep, kept_home


@pytest.mark.parametrize("noun", [NOTES, FACTS, LEARNED, CURATED, ALLOWED], ids=lambda noun: noun.name)
def test_each_verb_is_a_command_with_the_arguments_that_its_slash_form_has(noun: Noun) -> None:
    group = group_of(noun)
    for verb in noun.verbs:
        command = group.commands[verb.name]
        places = [each.name for each in command.params if isinstance(each, click.Argument)]
        assert places == [each.name for each in verb.arguments if not each.flag]
        assert CliRunner().invoke(group, [verb.name, "--help"]).exit_code == 0


async def filled(folder: Path) -> None:
    async with kept_home(folder, Upkeep()) as kept:
        await kept.make("make-tea", days=-100)
        await kept.make("make-coffee")


def test_an_empty_home_has_no_passes(tmp_path: Path):
    home = tmp_path / "home"
    wanted = {"status", "run", "pause", "resume", "pin", "unpin", "restore", "rollback", "report", "look"}
    assert set(group_of(CURATED).commands) == wanted
    assert "No pass has ended yet. The first, which only reports, is due" in typed(home, "curator", "status").out
    assert json.loads(typed(home, "curator", "status", "--json").out)["skills"] == []
    assert typed(home, "curator", "report", "--list").out == "No pass has ended yet.\n"
    assert json.loads(typed(home, "curator", "report", "--list", "--json").out) == []
    for words in ("report", "rollback"):
        with pytest.raises(HermesError, match="o pass "):
            typed(home, "curator", words)
    with pytest.raises(NoSkill):
        typed(home, "curator", "restore", "make-tea")


def test_a_home_is_looked_after_and_put_back(tmp_path: Path):
    asyncio.run(filled(tmp_path))
    home = tmp_path / "home"
    config = (home / "config.yaml").read_text()
    (home / "config.yaml").write_text(f"{config}curator:\n  consolidate: false\n")
    first = typed(home, "curator", "run")
    assert "1 would be done" in first.out
    assert "This pass only reported" in first.out

    done = json.loads(typed(home, "curator", "run", "--json").out)
    assert [each["name"] for each in done["changes"]] == ["make-tea"]
    assert "Archived: make-tea" in typed(home, "curator", "status").out
    assert f"hermes curator rollback {done['id']}" in typed(home, "curator", "report").out
    assert json.loads(typed(home, "curator", "report", done["id"], "--json").out)["job"] == done["job"]
    listed = typed(home, "curator", "report", "--list").out
    assert "looked" in listed
    assert "did" in listed

    assert typed(home, "curator", "rollback").out == "`make-tea` is as it was.\n"
    assert "rolled back" in typed(home, "curator", "report", "--list").out
    assert typed(home, "curator", "pin", "make-tea").out == "`make-tea` is pinned, from the next session on.\n"
    assert "a person pinned it" in typed(home, "curator", "status").out
    assert (
        typed(home, "curator", "unpin", "make-tea").out == "`make-tea` is no longer pinned, from the next session on.\n"
    )
    assert json.loads(typed(home, "curator", "run", "--dry-run", "--json").out)["looks"]


def test_a_pause_is_shown_and_a_skill_comes_back(tmp_path: Path):
    asyncio.run(filled(tmp_path))
    home = tmp_path / "home"
    config = (home / "config.yaml").read_text()
    (home / "config.yaml").write_text(f"{config}curator:\n  consolidate: false\n")
    assert typed(home, "curator", "pause").out == "The curator is paused.\n"
    assert typed(home, "curator", "status").out.startswith("Paused")
    assert typed(home, "curator", "resume").out == "The curator runs again.\n"
    typed(home, "curator", "run")
    typed(home, "curator", "run")
    assert typed(home, "curator", "restore", "make-tea").out == "`make-tea` is back.\n"
    assert "The next is due" in typed(home, "curator", "status").out
    assert json.loads(typed(home, "curator", "rollback", "--json").out) == ["`make-tea` is as it was."]
    (home / "config.yaml").write_text(f"{config}curator:\n  enabled: false\n")
    assert "Automatic passes are off" in typed(home, "curator", "status").out


def test_a_new_home_has_learned_nothing(tmp_path: Path):
    assert set(group_of(LEARNED).commands) >= {
        "log",
        "show",
        "diff",
        "undo",
        "why",
        "approve",
        "reject",
        "stats",
        "review",
    }
    assert typed(tmp_path / "home", "learn", "log").out == "There are no lessons yet.\n"
    assert json.loads(typed(tmp_path / "home", "learn", "log", "--json").out) == []
    assert json.loads(typed(tmp_path / "home", "learn", "stats", "--json").out) == {
        "kinds": {},
        "latest": [],
        "bounded": 0,
        "rules": 0,
        "in_line": 0,
    }


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
    assert [(line["author"], line["action"]) for line in lines] == [("owner", "edit"), ("found", "changed outside")]
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


def test_who_waits_is_listed_and_forgotten(tmp_path: Path):
    assert "No code is pending" in typed(tmp_path, "pairing", "list").out
    assert json.loads(typed(tmp_path, "pairing", "list", "--json").out) == {"waiting": [], "paired": []}
    with pytest.raises(HermesError, match="This code is unknown"):
        typed(tmp_path, "pairing", "approve", "AAAABBBB")
    assert typed(tmp_path, "pairing", "clear").out == "0 codes deleted.\n"
    assert "was not admitted" in typed(tmp_path, "pairing", "revoke", "telegram", "7").out


def test_what_nobody_known_wrote_is_found_until_its_owner_adopts_it(home: Path):
    (home / "skills/tea").mkdir(parents=True)
    (home / "skills/tea/SKILL.md").write_text("---\nname: tea\ndescription: Makes tea.\n---\nBoil.\n")

    log = typed(home, "learn", "log").out
    assert "memory MEMORY.md: changed outside by nobody known" in log
    assert "skill tea: changed outside by nobody known" in log

    assert typed(home, "learn", "adopt", "tea").out == "`tea` is yours, as it is now.\n"
    assert typed(home, "learn", "adopt", "MEMORY.md").out == "`MEMORY.md` is yours, as it is now.\n"
    assert "skill tea: adopt by owner" in typed(home, "learn", "log").out
    with pytest.raises(HermesError, match="Nothing of `tea` was changed outside"):
        typed(home, "learn", "adopt", "tea")

    (home / "skills/tea/SKILL.md").write_text("---\nname: tea\ndescription: Makes tea.\n---\nPour.\n")
    assert typed(home, "learn", "adopt", "tea").out == "`tea` is yours, as it is now.\n"
