"""`hermes secrets`: names and where they may go, never a value."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from hermes_agent.core.errors import ConfigError
from tests.cli.shell import typed

VALUE = "hunter2-hunter2"


def keep(home: Path, value: str = VALUE) -> str:
    said = typed(home, "secrets", "set", "MY_TOKEN", stdin=f"{value}\n")
    return said.out + said.err


def test_a_value_is_kept_and_never_shown(tmp_path: Path) -> None:
    said = keep(tmp_path)
    typed(tmp_path, "secrets", "allow", "MY_TOKEN", "--host", "api.example.com", "--command", "git push*")
    typed(tmp_path, "secrets", "allow", "MY_TOKEN", "--host", "*.example.org")
    listed = typed(tmp_path, "secrets", "list").out
    found = json.loads(typed(tmp_path, "secrets", "list", "--json").out)

    assert VALUE not in said + listed + json.dumps(found)
    assert found == [
        {
            "name": "MY_TOKEN",
            "source": ".env",
            "hosts": ["api.example.com", "*.example.org"],
            "commands": ["git push*"],
        }
    ]


def test_what_is_removed_is_gone_with_its_rules(tmp_path: Path) -> None:
    keep(tmp_path)
    typed(tmp_path, "secrets", "allow", "MY_TOKEN", "--host", "x")

    assert "deleted" in typed(tmp_path, "secrets", "remove", "MY_TOKEN").out
    assert "no secret" in typed(tmp_path, "secrets", "remove", "MY_TOKEN").out
    assert json.loads(typed(tmp_path, "secrets", "list", "--json").out) == []


@pytest.mark.parametrize("value", ["", "[secret MY_TOKEN]", "[redacted]"])
def test_an_empty_value_and_the_mark_of_a_hidden_one_are_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError):
        keep(tmp_path, value)


def test_where_it_may_go_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError):
        typed(tmp_path, "secrets", "allow", "MY_TOKEN")
