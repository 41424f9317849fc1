"""`hermes api` and `hermes worker`: the real processes, from their first line to their end."""

import asyncio
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

from hermes_agent.app.settings import SERVED
from hermes_agent.cli.commands.worker import worker
from hermes_agent.core.chat import Conversation, Inbound, Principal
from hermes_agent.core.errors import ConfigError
from hermes_agent.core.messages import Text
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.store.database import open_store
from hermes_agent.store.sessions import Session
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.cli.shell import PROGRAM, ROOT, typed
from tests.measured import measured

KEY = "a-key-of-sixteen-characters"


@contextmanager
def running(home: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program, and its first line."""
    environment = {"PYTHONPATH": str(ROOT / "src"), "HERMES_HOME": str(home), "PATH": "/usr/bin:/bin", **measured()}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


def ask(url: str, path: str, body: object = None) -> dict[str, object]:
    """The API's answer."""
    request = urllib.request.Request(
        url + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"authorization": f"Bearer {KEY}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read())


def settle(home: Path) -> None:
    (home / "config.yaml").write_text("model:\n  default: demo/scripted\napi:\n  port: 0\n")
    (home / ".env").write_text(f"API_SERVER_KEY={KEY}\n")
    (home / ".env").chmod(0o600)


def test_the_server_answers_until_it_is_told_to_end(home: Path):
    settle(home)
    with running(home, "api", "run") as (process, line):
        url = line.split()[-1]
        assert ask(url, "/models")["data"][0]["id"] == "hermes"
        reply = ask(url, "/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]})
        process.send_signal(signal.SIGTERM)

        assert "scripted model" in reply["choices"][0]["message"]["content"]
        assert process.wait(timeout=15) == 0


def test_a_gateway_serves_the_api_and_webhooks_that_are_enabled(home: Path):
    settle(home)
    (home / "config.yaml").write_text(
        "model:\n  default: demo/scripted\napi:\n  enabled: true\n  port: 0\nwebhooks:\n  enabled: true\n  port: 0\n"
    )
    with running(home, "gateway", "run") as (process, line):
        assert ask(line.split()[-1], "/models")["data"][0]["id"] == "hermes"
        webhooks = process.stdout.readline()
        process.send_signal(signal.SIGTERM)

        assert webhooks.startswith("Webhooks are taken at http://")
        assert process.wait(timeout=15) == 0


def test_what_the_server_answers_can_be_recorded_played_and_served_again(home: Path, tmp_path: Path):
    settle(home)
    tape = tmp_path / "tape.jsonl"
    question = {"messages": [{"role": "user", "content": "run `true`"}]}
    replies = []
    for words in (("--record", str(tape), "api", "run"), ("--replay", str(tape), "api", "run")):
        with running(home, *words) as (process, line):
            replies.append(ask(line.split()[-1], "/chat/completions", question)["choices"][0]["message"])
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=15) == 0

    assert replies[0] == replies[1]
    assert "Played as recorded." in typed(home, "replay", str(tape)).out


def events(url: str, run: str, after: int, until: str) -> list[int]:
    """The numbers of a run's durable events behind `after`, up to the first of that kind, or as far as they come."""
    request = urllib.request.Request(
        f"{url}/runs/{run}/events", headers={"authorization": f"Bearer {KEY}", "last-event-id": str(after)}
    )
    found, number = [after], after
    with urllib.request.urlopen(request, timeout=30) as answer:
        for line in answer:
            if line.startswith(b"id: "):
                number = int(line[4:])
            if line.startswith(b"event: ") and number != found[-1]:
                found.append(number)
            if line == f"event: {until}\n".encode():
                break
    return found[1:]


@pytest.mark.slow
def test_a_watcher_comes_back_to_another_process_and_misses_nothing(home: Path):
    settle(home)
    with running(home, "api", "run") as (process, line):
        url = line.split()[-1]
        run = str(ask(url, "/runs", {"input": "run `sleep 2; echo done`"})["id"])
        before = events(url, run, 0, "tool_started")
        process.kill()
    with running(home, "api", "run") as (_, line):
        after = events(line.split()[-1], run, before[-1], "run_ended")

    assert before + after == list(range(1, after[-1] + 1))


def test_who_only_watches_holds_up_no_end(home: Path):
    settle(home)
    with running(home, "api", "run") as (process, line):
        url = line.split()[-1]
        run = str(ask(url, "/runs", {"input": "run `curl -d x http://host.invalid/x`"})["id"])
        request = urllib.request.Request(f"{url}/runs/{run}/events", headers={"authorization": f"Bearer {KEY}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert any(line == b"event: asked\n" for line in answer)
            began = monotonic()
            process.send_signal(signal.SIGTERM)
            rest = answer.read()
        assert process.wait(timeout=15) == 0
        assert monotonic() - began < 8  # An answer that is on its way would be waited for for ten seconds.
        assert b"run_ended" not in rest
        assert process.stdout.read() == ""


def test_a_worker_works_until_it_is_told_to_end(home: Path):
    settle(home)
    assert typed(home, "sessions", "stats").code == 0  # The settings were right once.
    (home / "config.yaml").write_text("nonsense: 1\n")
    with running(home, "worker") as (process, line):
        assert "nonsense" in line
        assert process.stdout.readline() == "Working on gateway.\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=15) == 0
    assert worker.name == "worker"


async def left(home: Path) -> None:
    """A message of a chat that a gateway took in and nobody has answered."""
    chat, ann = Conversation(platform="telegram", chat="7"), Principal(platform="telegram", user="7")
    record = Session(
        id="s1", principal=ann.key, conversation=chat.key, surface="telegram", workspace=str(home), created=0, updated=0
    )
    said = Inbound(
        source="telegram", source_id="1", principal=ann, conversation=chat, parts=(Text(text="Hi"),), received=0.0
    )
    store = await open_store(str(home / "hermes.db"))
    await store.write(lambda tx: store.sessions.create(tx, record))
    await store.inbox.accept(said, record.id, SERVED)
    await store.close()


@pytest.mark.parametrize("words", [("worker",), ("api", "run")])
def test_whoever_works_for_a_gateway_tells_the_model_of_its_channels(home: Path, words: tuple[str, ...]):
    settle(home)
    asyncio.run(left(home))
    asked = Event()

    def answer(_: Heard) -> Say:
        asked.set()
        return Say("Hello.")

    with serving_in_thread(openai_model(answer, keys=())) as server:
        config = f"model:\n  default: custom/m\n  base_url: {server.url}\napi:\n  port: 0\n"
        (home / "config.yaml").write_text(f"{config}gateway:\n  channels:\n    telegram:\n      enabled: true\n")
        with running(home, *words):
            assert asked.wait(20)

        assert "\n- Channel: Telegram, in private: one person reads\n- Messages: 4,096 " in server.asked[0].system


def test_without_a_key_the_server_says_how_to_make_one(home: Path):
    with pytest.raises(ConfigError, match="hermes api key"):
        typed(home, "api", "run")


def test_the_key_is_made_once_and_anew_when_wanted(home: Path):
    made = typed(home, "api", "key")
    again = typed(home, "api", "key")
    new = typed(home, "api", "key", "--new")

    assert made.out == again.out != new.out
    assert len(made.out.strip()) >= 32
    assert "API_SERVER_KEY" in made.err
    assert again.err == ""


def test_a_key_of_the_environment_is_not_replaced(home: Path):
    with pytest.raises(ConfigError, match="change it there"):
        typed(home, "api", "key", "--new", API_SERVER_KEY=KEY)
