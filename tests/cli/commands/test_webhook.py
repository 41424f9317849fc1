"""`hermes webhook`: what routes there are, and one tried out on a real server."""

import json
import signal
from pathlib import Path

import pytest

from hermes_agent.core.errors import ConfigError, HermesError
from tests.cli.commands.test_api import ask, running, settle
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


TOLD = """hooks:
  told:
    on: [gateway:start]
    command: cat > told
"""


@pytest.mark.parametrize("words", [("api", "run"), ("gateway", "run")])
def test_webhooks_are_taken_with_their_own_secrets_where_the_api_has_no_key(home: Path, words: tuple[str, ...]):
    (home / "config.yaml").write_text(f"model:\n  default: demo/scripted\n{ROUTES}")
    (home / ".env").write_text("HOOK_SECRET=a-secret-of-the-hooks\n")
    (home / ".env").chmod(0o600)
    with running(home, *words) as (process, line):
        url = line.split()[-1].removesuffix("/webhooks")
        done = program("webhook", "test", "push", "--url", url, home=home, stdin=b'{"a": 1}')
        said = process.stdout.readline()

    assert line.startswith("Webhooks are taken at http://127.0.0.1:")
    assert json.loads(done.out)["status"] == "accepted", done.err
    assert "it has no key" in said if words[0] == "api" else "The gateway listens" in said


def test_a_gateway_serves_the_api_and_webhooks_beside_its_channels_and_tells_hooks_where(home: Path):
    settle(home)
    with (home / "config.yaml").open("a") as config:
        config.write(f"  enabled: true\n{ROUTES}{TOLD}")
    assert "may run" in typed(home, "hooks", "allow", "told").out
    with running(home, "gateway", "run") as (process, line):
        url = line.split()[-1]
        webhooks, listens = process.stdout.readline(), process.stdout.readline()
        assert ask(url, "/models")["data"][0]["id"] == "hermes"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=15) == 0

    assert webhooks.startswith("Webhooks are taken at http://127.0.0.1:")
    assert listens.startswith("The gateway listens")
    assert json.loads((home / "told").read_text())["url"] == url.removesuffix("/v1")


def test_a_gateway_that_is_to_serve_the_api_needs_a_key(home: Path):
    (home / "config.yaml").write_text(f"api:\n  enabled: true\n{ROUTES}")
    with pytest.raises(ConfigError, match="hermes api key"):
        typed(home, "gateway", "run")
