"""A person asks what a model was shown and what was said: the program, its database, and the commands that read it."""

import json
from pathlib import Path

from tests.cli.shell import program, typed


def test_the_prompts_of_two_conversations_are_shown_and_compared(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("model:\n  default: demo/scripted\n")
    first, second = (began(home, soul) for soul in ("I am the gardener.", "I am the cook."))

    shown = json.loads(typed(home, "prompt", "--session", first, "--json").out)
    compared = typed(home, "prompt", "--diff", first, second).out.splitlines()

    assert shown[0]["text"] == "I am the gardener."
    assert {part["name"] for part in shown} >= {"how to work", "skills", "memory", "date", "tools"}
    assert compared == ["--- identity", "+++ identity", "@@ -1 +1 @@", "-I am the gardener.", "+I am the cook."]


def test_what_was_said_is_found_again_with_its_date_and_number(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("model:\n  default: demo/scripted\n")
    session = began(home, "I am the gardener.")

    found = typed(home, "sessions", "search", "heron?! (").out

    assert session in found
    assert "#2 user" in found
    assert "the **heron** came" in found


def began(home: Path, soul: str) -> str:
    """A conversation of one message, with somebody of that description; its id."""
    (home / "SOUL.md").write_text(soul)
    typed(home, "learn", "adopt", "SOUL.md")
    said = program("-z", "Today the heron came.", "--json", home=home)
    assert said.code == 0, said.err
    events = [json.loads(line) for line in said.out.splitlines()]
    return next(event["session"] for event in events if event.get("session"))
