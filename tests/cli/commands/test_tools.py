"""`hermes tools`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import ConfigError
from tests.cli.shell import typed


def states(home: Path, *surface: str) -> dict[str, bool]:
    found = json.loads(typed(home, "tools", "list", *surface, "--json").out)
    return {each["tool"]: each["on"] for each in found}


def test_every_tool_is_listed_with_what_it_needs(tmp_path: Path) -> None:
    said = typed(tmp_path, "tools", "list").out

    assert said.splitlines()[0].split() == ["TOOL", "TOOLSET", "CLI", "NEEDS", "DOES"]
    assert "terminal" in said
    assert all(states(tmp_path).values())


def test_a_guest_has_no_shell_until_it_is_enabled(tmp_path: Path) -> None:
    guest = ("--surface", "guest")
    assert not states(tmp_path, *guest)["terminal"]

    typed(tmp_path, "tools", "enable", "shell", *guest)
    assert states(tmp_path, *guest)["terminal"]

    typed(tmp_path, "tools", "disable", "shell", *guest)
    assert not states(tmp_path, *guest)["terminal"]


def test_disabling_is_for_one_surface(tmp_path: Path) -> None:
    typed(tmp_path, "tools", "disable", "shell", "todo")

    assert not states(tmp_path)["terminal"]
    assert states(tmp_path, "--surface", "library")["terminal"]

    typed(tmp_path, "tools", "enable", "shell")
    assert states(tmp_path)["terminal"]
    assert not states(tmp_path)["todo"]


def test_a_wrong_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean `shell`"):
        typed(tmp_path, "tools", "disable", "shel")


def test_a_surface_that_does_not_exist_is_told_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean `telegram`"):
        typed(tmp_path, "tools", "disable", "shell", "--surface", "telegran")
    with pytest.raises(ConfigError, match="There are: cli, library"):
        typed(tmp_path, "tools", "list", "--surface", "moon-base-9")


def test_only_chat_platforms_send_files(tmp_path: Path) -> None:
    telegram = ("--surface", "telegram")
    assert "send_file" not in states(tmp_path)
    assert states(tmp_path, *telegram)["send_file"]

    typed(tmp_path, "tools", "disable", "sending", *telegram)
    assert not states(tmp_path, *telegram)["send_file"]
    for surface in ("cli", "guest"):
        with pytest.raises(ConfigError, match="Only chat platforms have `sending`"):
            typed(tmp_path, "tools", "enable", "sending", "--surface", surface)
