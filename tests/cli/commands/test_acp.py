"""`hermes acp`: its check, and the settings of editors."""

import json
import sys
from pathlib import Path

import pytest

from hermes_agent.core.errors import ConfigError
from tests.cli.shell import program, typed


def test_the_check_says_what_it_can_do_and_that_no_model_is_there(tmp_path: Path):
    said = program("acp", "--check", home=tmp_path)

    assert said.code == 0, said.err
    assert "Protocol: version 1" in said.out
    assert "A scripted turn ended with end_turn" in said.out
    assert "Model: none." in said.out


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("PATH", "/nowhere")
    return tmp_path / "person"


@pytest.mark.parametrize(
    ("editor", "file"), [("zed", ".config/zed/settings.json"), ("jetbrains", ".jetbrains/acp.json")]
)
def test_an_editor_is_told_how_hermes_starts_and_keeps_what_it_had(
    person: Path, tmp_path: Path, editor: str, file: str
):
    path = person / file
    path.parent.mkdir(parents=True)
    before = {"theme": "One", "agent_servers": {"Other": {"command": "other"}}}
    path.write_text(json.dumps(before))

    shown = json.loads(typed(tmp_path / "home", "acp", "install", editor).out)
    assert json.loads(path.read_text()) == before
    said = typed(tmp_path / "home", "acp", "install", editor, "--write")

    after = json.loads(path.read_text())
    assert after["agent_servers"]["Hermes"] == shown["agent_servers"]["Hermes"]
    assert after["agent_servers"]["Hermes"]["command"] == sys.executable
    assert after["agent_servers"]["Hermes"]["args"][-1] == "acp"
    assert after["agent_servers"]["Hermes"]["env"] == {"HERMES_HOME": str(tmp_path / "home")}
    assert (after["theme"], after["agent_servers"]["Other"]) == ("One", {"command": "other"})
    assert json.loads(path.with_name(f"{path.name}.bak").read_text()) == before
    assert ".bak" in said.out


def test_settings_with_comments_are_left_alone(person: Path, tmp_path: Path):
    path = person / ".config/zed/settings.json"
    path.parent.mkdir(parents=True)
    path.write_text("// mine\n{}")
    with pytest.raises(ConfigError, match="may have comments"):
        typed(tmp_path / "home", "acp", "install", "zed", "--write")
    assert path.read_text() == "// mine\n{}"


@pytest.mark.parametrize("editor", ["neovim", "emacs"])
def test_an_editor_whose_settings_are_a_program_is_shown_what_to_paste(person: Path, tmp_path: Path, editor: str):
    said = typed(tmp_path / "home", "acp", "install", editor).out
    assert json.dumps(sys.executable) in said
    assert '"acp"' in said
    with pytest.raises(ConfigError, match="paste"):
        typed(tmp_path / "home", "acp", "install", editor, "--write")
