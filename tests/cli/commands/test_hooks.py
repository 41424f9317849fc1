"""`hermes hooks`: what there is, what may run, and one tried out."""

import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import ConfigError
from tests.cli.shell import program, typed

HOOKS = "hooks:\n  a:\n    on: [run:end]\n    command: cat >&2; exit 2\n  bad:\n    on: [nothing]\n    command: x\n"


def test_a_hook_is_listed_allowed_tried_and_revoked(home: Path):
    assert "no hooks" in typed(home, "hooks", "list").err
    (home / "config.yaml").write_text(HOOKS)

    assert "waits for your consent" in typed(home, "hooks", "list").out
    with pytest.raises(ConfigError, match="hermes hooks allow a"):
        typed(home, "hooks", "test", "a", "run:end")
    assert "a may run" in typed(home, "hooks", "allow", "a").out
    assert json.loads(typed(home, "hooks", "list", "--json").out)[0]["allowed"] is True
    done = program("hooks", "test", "a", "run:end", home=home, stdin=b'{"x": 1}')
    assert json.loads(json.loads(done.out)["block"]) == {"event": "run:end", "x": 1}
    assert "is no longer allowed" in typed(home, "hooks", "revoke", "a").out
    assert "was not allowed" in typed(home, "hooks", "revoke", "a").out


def test_what_cannot_be_allowed_says_why(home: Path):
    (home / "config.yaml").write_text(HOOKS)
    for name, words in (("bad", "nothing"), ("gone", "no hook `gone`")):
        with pytest.raises(ConfigError, match=words):
            typed(home, "hooks", "allow", name)
