"""`hermes curator`, from an empty home to a pass and back."""

import asyncio
import json
from pathlib import Path

import pytest

from hermes_agent.cli.commands.curator import curator
from hermes_agent.core.errors import HermesError
from hermes_agent.skills.library import NoSkill
from tests.cli.shell import typed
from tests.learning.curator.harness import Upkeep, kept_home


async def filled(folder: Path) -> None:
    async with kept_home(folder, Upkeep()) as kept:
        await kept.make("make-tea", days=-100)
        await kept.make("make-coffee")


def test_an_empty_home_has_no_passes(tmp_path: Path):
    home = tmp_path / "home"
    wanted = {"status", "run", "pause", "resume", "pin", "unpin", "restore", "rollback", "report", "look"}
    assert set(curator.commands) == wanted
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
