"""`hermes webhook`: what routes there are, and one tried out on a real server."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

from hermes_agent.core.errors import ConfigError, HermesError
from tests.cli.commands.test_worker import ask, running, settle
from tests.cli.shell import Said, program, typed

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


def test_what_another_server_answers_is_shown_as_it_is(home: Path):
    (home / "config.yaml").write_text(ROUTES)

    class Other(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<p>Hello</p>")

        def log_message(self, *_: object):
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as server, ThreadPoolExecutor(1) as beside:
        beside.submit(server.handle_request)
        url = f"http://127.0.0.1:{server.server_port}"
        done = typed(home, "webhook", "test", "push", "--url", url, HOOK_SECRET="a-secret-of-the-hooks")

    assert done.out.strip() == "<p>Hello</p>"


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
    assert "it has no key" in said if words[0] == "api" else "The gateway runs" in said


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
    assert listens.startswith("The gateway runs")
    assert json.loads((home / "told").read_text())["url"] == url.removesuffix("/v1")


def test_a_gateway_that_is_to_serve_the_api_needs_a_key(home: Path):
    (home / "config.yaml").write_text(f"api:\n  enabled: true\n{ROUTES}")
    with pytest.raises(ConfigError, match="hermes api key"):
        typed(home, "gateway", "run")


def test_a_route_is_made_changed_tried_out_on_a_running_server_and_taken_away(home: Path):
    settle(home)
    with (home / "config.yaml").open("a") as config:
        config.write("webhooks:\n  enabled: true\n  port: 0\n")
    with running(home, "api", "run") as (process, _):
        url = process.stdout.readline().split()[-1].removesuffix("/webhooks")
        made = typed(
            *(home, "webhook", "add", "push", "--scheme", "github", "--event", "push", "--event", "pull_request"),
            *("--filter", "repository.full_name=me/.*", "--prompt", "Somebody pushed: {head_commit.message}"),
        )
        route = json.loads(typed(home, "webhook", "list", "--json").out)["push"]
        sent = b'{"repository": {"full_name": "me/hermes"}, "head_commit": {"message": "Mend"}}'
        deadline = monotonic() + 10
        while "accepted" not in (done := tried(home, url, sent)).out and monotonic() < deadline:
            pass
        other = tried(home, url, b'{"repository": {"full_name": "you/hermes"}}')
        secret = typed(home, "webhook", "add", "push", "--deliver", "telegram:7")
        changed = json.loads(typed(home, "webhook", "list", "--json").out)["push"]
        removed = typed(home, "webhook", "remove", "push")

    assert json.loads(done.out)["status"] == "accepted", done.err
    assert "one of its filters rejected this payload" in other.err
    assert "/webhooks/push" in made.out
    assert made.out.split()[-1] in (home / ".env").read_text()
    assert (route["scheme"], route["secret"]) == ("github", "WEBHOOK_PUSH_SECRET")
    assert route["events"] == ["push", "pull_request"]
    assert route["filters"] == {"repository.full_name": "me/.*"}
    assert changed == {**route, "deliver": "telegram:7"}
    assert "WEBHOOK_PUSH_SECRET" in secret.out
    assert made.out.split()[-1] not in secret.out  # It is shown when it is made.
    assert "removed" in removed.out
    assert "no routes" in typed(home, "webhook", "list").err


def tried(home: Path, url: str, sent: bytes) -> Said:
    return program("webhook", "test", "push", "--url", url, home=home, stdin=sent)


def test_the_first_route_enables_webhooks_and_svix_has_a_secret_of_its_own_form(home: Path):
    made = typed(home, "webhook", "add", "build", "--scheme", "svix")
    assert "enabled from now on" in made.err
    assert made.out.split()[-1].startswith("whsec_")
    assert "webhooks.enabled" in typed(home, "config", "show").out


def test_nobody_reads_half_of_a_route(home: Path):
    made, read, config = Event(), set[str](), home / "config.yaml"
    config.write_text("agent:\n  max_turns: 12\n")

    def look() -> None:
        while not made.is_set():
            read.add(config.read_text())

    with ThreadPoolExecutor() as threads:
        looking = threads.submit(look)
        try:
            typed(home, "webhook", "add", "push", "--deliver", "log", "--prompt", "{a}", "--deliver-only")
        finally:
            made.set()
        looking.result()

    assert read <= {"agent:\n  max_turns: 12\n", config.read_text()}


def test_no_secret_is_made_for_a_route_that_cannot_be_written(home: Path):
    config = home / "config.yaml"
    config.write_text("agent:\n  max_turns: 12\n")
    typed(home, "webhook", "list")
    config.write_text("agent:\n  max_turns: many\n")

    with pytest.raises(ConfigError, match="Nothing was changed"):
        typed(home, "webhook", "add", "push")

    assert not (home / ".env").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("a/b",), "cannot name a route"),
        (("x", "--deliver", "nowhere:7"), "names no chat"),
        (("x", "--secret", "a-b"), "cannot name a secret"),
        (("x", "--filter", "a"), "is not a filter"),
        (("x", "--filter", "a=("), "not a regular expression"),
    ],
)
def test_a_route_that_cannot_be_is_not_made(home: Path, words: tuple[str, ...], reason: str):
    with pytest.raises(ConfigError, match=reason):
        typed(home, "webhook", "add", *words)
    assert not (home / "config.yaml").exists()
    with pytest.raises(ConfigError, match="no route `gone`"):
        typed(home, "webhook", "remove", "gone")
