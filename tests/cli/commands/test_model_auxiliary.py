"""`hermes model auxiliary` and `hermes model set --for`."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from hermes_agent.core.errors import NoModel
from tests.cli.shell import typed


def test_each_purpose_is_listed_with_its_model_and_limits(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "auxiliary:\n"
        "  judge: {model: ollama/qwen3, seconds: 20, money: 0.5, tokens: 20000}\n"
        "  title: {enabled: false}\n"
        "  web: {model: anthropic/claude-haiku-4-5}\n"
    )
    out = typed(tmp_path, "model", "auxiliary").out
    rows = {line.split()[0]: line for line in out.splitlines()[1:]}

    assert list(rows) == ["compression", "title", "review", "curator", "vision", "judge", "web", "mcp"]
    assert rows["judge"].split()[1:] == ["ollama/qwen3", "20", "0.5", "20,000"]
    assert "the session's model" in rows["compression"]
    assert rows["title"].endswith("turned off")
    assert "none" in rows["vision"]
    assert "cannot be asked: Anthropic needs a key" in rows["web"]
    told = json.loads(typed(tmp_path, "model", "auxiliary", "--json").out)
    assert told[5] == {
        "purpose": "judge",
        "model": "ollama/qwen3",
        "seconds": 20.0,
        "money": 0.5,
        "tokens": 20000,
        "note": "",
    }


def test_a_model_is_named_for_a_purpose(tmp_path: Path) -> None:
    said = typed(tmp_path, "model", "set", "ollama/qwen3", "--for", "title")
    kept = json.loads(typed(tmp_path, "model", "set", "demo/scripted", "--for", "web", "--json").out)

    assert said.out == "ollama/qwen3 now works for `title`.\n"
    assert kept["model"] == "demo/scripted"
    models = {
        each["purpose"]: each["model"] for each in json.loads(typed(tmp_path, "model", "auxiliary", "--json").out)
    }
    assert (models["title"], models["web"], models["judge"]) == ("ollama/qwen3", "demo/scripted", "")


@pytest.mark.parametrize("name", ["anthropic/claude-haiku-4-5", "antropic/x", "moa/council"])
def test_a_model_that_cannot_be_asked_is_not_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.yaml").write_text("moa:\n  council:\n    members: [demo/scripted]\n")

    with pytest.raises(NoModel):
        typed(tmp_path, "model", "set", name, "--for", "title")


def test_a_purpose_that_there_is_not_is_told_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(click.BadParameter, match="compression"):
        typed(tmp_path, "model", "set", "demo/scripted", "--for", "titles")
