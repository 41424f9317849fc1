"""`hermes bundles`."""

import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from tests.cli.shell import Said, typed


def bundles(home: Path, *words: str) -> Said:
    return typed(home, "bundles", *words)


def test_a_bundle_is_made_shown_and_taken_away(tmp_path: Path):
    assert bundles(tmp_path, "list").out == "There are no bundles.\n"
    said = ("--description", "For a release.", "--instruction", "Notes first.")
    made = bundles(tmp_path, "add", "release", "release-notes", "commit-message", *said)
    assert "`/release` uses release-notes, commit-message" in made.out
    assert bundles(tmp_path, "show", "release").out.splitlines() == [
        "/release: For a release.",
        "- release-notes",
        "- commit-message",
        "Notes first.",
    ]
    assert json.loads(bundles(tmp_path, "show", "release", "--json").out)["instruction"] == "Notes first."
    assert [row["name"] for row in json.loads(bundles(tmp_path, "list", "--json").out)] == ["release"]
    assert "For a release." in bundles(tmp_path, "list").out
    assert "its skills stay" in bundles(tmp_path, "remove", "release").out
    assert bundles(tmp_path, "list", "--json").out == "[]\n"


def test_what_is_not_there_is_not_bundled(tmp_path: Path):
    with pytest.raises(HermesError, match="no skill `nothing`"):
        bundles(tmp_path, "add", "release", "nothing")
    with pytest.raises(HermesError, match="no bundle `release`"):
        bundles(tmp_path, "show", "release")


def test_a_command_of_the_name_wins_and_that_is_said(tmp_path: Path):
    assert "also where `/help` is a command" in bundles(tmp_path, "add", "help", "repo-tour").out
    assert bundles(tmp_path, "show", "help").out.splitlines() == ["/help", "- repo-tour"]


def test_a_broken_one_does_not_hide_the_others(tmp_path: Path):
    bundles(tmp_path, "add", "release", "repo-tour")
    (tmp_path / "skill-bundles/bad.yaml").write_text("skills: 7")
    listed = bundles(tmp_path, "list")
    assert ("release" in listed.out, "bad.yaml is not a bundle" in listed.out) == (True, True)
