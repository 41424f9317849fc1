"""`hermes webhook`: what routes there are, and one tried out on a real server."""

import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import ConfigError, HermesError
from tests.cli.commands.test_api import running, settle
from tests.cli.shell import program, typed

ROUTES = "webhooks:\n  enabled: true\n  port: 0\n  routes:\n    push:\n      secret: HOOK_SECRET\n    bare: {}\n"


def test_routes_are_listed(home: Path):
    assert "no routes" in typed(home, "webhook", "list").err
    (home / "config.yaml").write_text(ROUTES)

    assert "push" in typed(home, "webhook", "list").out
    assert json.loads(typed(home, "webhook", "list", "--json").out)["push"]["scheme"] == "generic"


def test_a_route_is_tried_out(home: Path):
    settle(home)
    with (home / "config.yaml").open("a") as config:
        config.write(ROUTES)
    with (home / ".env").open("a") as env:
        env.write("HOOK_SECRET=a-secret-of-the-hooks\n")
    with running(home, "api", "run") as (process, _):
        url = process.stdout.readline().split()[-1].removesuffix("/webhooks")
        done = program("webhook", "test", "push", "--url", url, home=home, stdin=b'{"a": 1}')
        assert json.loads(done.out)["status"] == "accepted", done.err


def test_what_cannot_be_tried_says_why(home: Path):
    (home / "config.yaml").write_text(ROUTES)
    for words, reason in (
        (("nowhere",), "no route `nowhere`"),
        (("bare",), "names no secret"),
    ):
        with pytest.raises(ConfigError, match=reason):
            typed(home, "webhook", "test", *words)
    with pytest.raises(HermesError, match="cannot be reached"):
        typed(home, "webhook", "test", "push", "--url", "http://127.0.0.1:1", HOOK_SECRET="s")
