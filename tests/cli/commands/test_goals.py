"""`hermes goals`: set, pursued here, and usable in scripts."""

import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.app.place import settle_home
from tests.cli.shell import typed


def works(heard: Heard) -> Call | Say:
    return Say("Done.") if heard.turn else Call("write_file", {"path": "done.txt", "content": "yes"})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with serving_in_thread(openai_model(works, keys=())) as server:
        yield settle_home(tmp_path / "home", server.url).root


def test_a_goal_is_pursued_here_and_the_exit_code_says_whether_it_is_reached(home: Path):
    done = typed(home, "goals", "add", "Have it.", "--command", "test -e done.txt")
    blocked = typed(home, "goals", "add", "Never.", "--command", "exit 1", "--json")

    assert done.code == 0
    assert "  done  turn 1 of 20" in done.out
    assert "met: `test -e done.txt` (exit 0" in done.out
    assert "hermes goals resume g_" in done.err
    assert blocked.code == 1
    assert json.loads(blocked.out)["state"] == "blocked"
    again = typed(home, "goals", "resume", json.loads(blocked.out)["id"], "--turns", "2")
    assert again.code == 1


def test_a_goal_that_is_written_down_is_listed_checked_and_cleared(home: Path):
    made = typed(home, "goals", "add", "Later.", "--file", "other.txt", "--later", "--json")
    name = json.loads(made.out)["id"]
    missing = typed(home, "goals", "check", name)
    Path("other.txt").touch()
    there = typed(home, "goals", "check", "--json")

    assert (made.code, missing.code, there.code) == (0, 1, 0)
    assert "unmet: file other.txt (exit 1" in missing.out
    assert json.loads(there.out)["met"] is True
    assert typed(home, "goals", "list").out == ""
    assert f"{name}  done" in typed(home, "goals", "list", "--all").out
    with pytest.raises(HermesError, match="Did you mean"):
        typed(home, "goals", "clear", name[:-1] + "x")


def test_a_goal_that_is_refused_begins_no_session(home: Path):
    for words, why in ((("--command", "true"), "Already true"), (("--turns", "0"), "at least one turn")):
        with pytest.raises(HermesError, match=why):
            typed(home, "goals", "add", "Have it.", *words)

    assert typed(home, "sessions", "list").out == ""
