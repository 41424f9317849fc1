"""`hermes memory facts`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.memory.backends.holographic import made_of
from hermes_agent.store.database import open_store
from tests.cli.shell import Said, typed
from tests.memory.harness import TOLD


def facts(home: Path, *words: str) -> Said:
    return typed(home, "memory", "facts", *words)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    async def told() -> None:
        store = await open_store(tmp_path / "home/hermes.db")
        await store.known_facts.add("hermes", made_of("Tea is at four."), TOLD, 1.0)
        await store.close()

    (tmp_path / "home").mkdir()
    asyncio.run(told())
    return tmp_path / "home"


def test_facts_are_shown_with_their_trust_and_where_they_come_from(home: Path) -> None:
    out = facts(home, "show").out

    assert "trust 0.50  hermes  foreground cli:ann  s1 1-2\n    Tea is at four.\n" in out
    (fact,) = json.loads(facts(home, "show", "--json").out)
    assert (fact["id"], fact["text"], fact["trust"]) == (1, "Tea is at four.", 0.5)


def test_a_fact_is_retracted_and_put_back_and_the_ledger_knows(home: Path) -> None:
    assert facts(home, "retract", "1").out == "Fact 1 is retracted: Tea is at four.\n"
    assert "No facts are known" in facts(home, "show").err
    assert json.loads(facts(home, "show", "--json").out) == []

    assert facts(home, "undo", "2").out == "Change 2 of fact 1 (retracted) is undone.\n"

    assert "Tea is at four." in facts(home, "show").out
    lines = facts(home, "log").out.splitlines()[::2]
    assert [line.split("  ")[3:5] for line in lines] == [
        ["undo of 2", "- to 0.50"],
        ["retracted", "0.50 to -"],
        ["added", "- to 0.50"],
    ]
    assert [line["source"]["author"] for line in json.loads(facts(home, "log", "--json").out)] == [
        "owner",
        "owner",
        "foreground",
    ]
    with pytest.raises(HermesError, match="undone already"):
        facts(home, "undo", "2")


def test_where_nothing_is_known_that_is_said(tmp_path: Path) -> None:
    assert "No facts are known" in facts(tmp_path / "home", "log").err
