"""`hermes learn` on an empty home; the rest is tested in tests/learning/test_learned.py."""

import json
from pathlib import Path

from hermes_agent.cli.commands.learn import learn
from tests.cli.shell import typed


def test_a_new_home_has_learned_nothing(tmp_path: Path):
    assert set(learn.commands) >= {"log", "show", "diff", "undo", "why", "approve", "reject", "stats", "review"}
    assert typed(tmp_path / "home", "learn", "log").out == "There are no lessons yet.\n"
    assert json.loads(typed(tmp_path / "home", "learn", "log", "--json").out) == []
    assert json.loads(typed(tmp_path / "home", "learn", "stats", "--json").out) == {
        "kinds": {},
        "latest": [],
        "bounded": 0,
        "rules": 0,
        "in_line": 0,
    }
