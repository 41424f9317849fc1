"""`hermes gateway`, `pairing` and `send` as a person uses them, against the double of a platform."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.cli.commands.send import place_of
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.host.serve import serve_in_thread
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.doubles.telegram import TOKEN, TelegramDouble
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.cli.shell import PROGRAM, ROOT, typed

ENV = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"), "TELEGRAM_BOT_TOKEN": TOKEN, "HOME": "/nonexistent"}


def until(ready: object, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def double() -> Iterator[TelegramDouble]:
    made = TelegramDouble()
    with serve_in_thread(made.handle) as server:
        made.server = server
        yield made


@pytest.fixture
def running(tmp_path: Path, double: TelegramDouble) -> Iterator[subprocess.Popen[str]]:
    """A real gateway process on a home whose channel is the double."""
    with serving_in_thread(openai_model([Say("Hello.")], keys=())) as model:
        (tmp_path / "config.yaml").write_text(
            f"model:\n  default: custom/m\n  base_url: {model.url}\ngateway:\n  channels:\n    telegram:\n"
            f"      enabled: true\n      options:\n        api_url: {double.url}\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "gateway", "run"],
            env={**ENV, "HERMES_HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert "telegram" in process.stdout.readline()
        yield process
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_stranger_is_let_in_and_answered_and_the_gateway_ends_when_asked(
    tmp_path: Path, double: TelegramDouble, running: subprocess.Popen[str]
):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(double.say("Hi", chat="7", user="7"))
    until(lambda: double.chats.of("7"))
    code = double.chats.of("7")[0].text.split("approve ")[1].split(" ")[0].strip("`")
    assert "Ann" in typed(tmp_path, "pairing", "list").out
    assert "is let in" in typed(tmp_path, "pairing", "approve", code).out
    loop.run_until_complete(double.say("Hi again", chat="7", user="7"))
    until(lambda: len(double.chats.of("7")) == 2)
    assert double.chats.of("7")[1].text == "Hello."

    assert typed(tmp_path, "send", "-t", "telegram:8", "News!").out == "Sent.\n"
    assert double.chats.of("8")[0].text == "News!"
    status = json.loads(typed(tmp_path, "gateway", "status", "--json").out)
    assert status["gateway"]["channels"]["telegram"]["state"] == "listening"
    assert "listening" in typed(tmp_path, "gateway", "status").out
    assert status["outbox"] == {"sent": 3}

    assert "asked to end" in typed(tmp_path, "gateway", "stop").err
    assert running.wait(timeout=30) == 0
    assert "No gateway runs" in typed(tmp_path, "gateway", "status").out
    loop.close()


def test_without_a_gateway_a_message_waits(tmp_path: Path):
    (tmp_path / "a.txt").write_text("content")

    said = typed(tmp_path, "send", "-t", "telegram:-8:3", "--file", str(tmp_path / "a.txt"), stdin="From a pipe")

    assert "no gateway runs now" in said.err
    assert "1 pending" in typed(tmp_path, "gateway", "status").out
    with pytest.raises(HermesError, match="No gateway runs"):
        typed(tmp_path, "gateway", "stop")


def test_nothing_is_not_sent(tmp_path: Path):
    with pytest.raises(ConfigError, match="nothing to send"):
        typed(tmp_path, "send", "-t", "telegram:1", stdin=" ")


@pytest.mark.parametrize("target", ["telegram", "irc:1", "telegram:"])
def test_a_target_names_a_chat(target: str):
    with pytest.raises(ConfigError, match="names no chat"):
        place_of(target)


def test_who_waits_is_listed_and_forgotten(tmp_path: Path):
    assert "Nobody waits" in typed(tmp_path, "pairing", "list").out
    assert json.loads(typed(tmp_path, "pairing", "list", "--json").out) == {"waiting": [], "paired": []}
    with pytest.raises(HermesError, match="Nobody was given this code"):
        typed(tmp_path, "pairing", "approve", "AAAABBBB")
    assert typed(tmp_path, "pairing", "clear").out == "0 codes are forgotten.\n"
    assert "was not let in" in typed(tmp_path, "pairing", "revoke", "telegram", "7").out


def test_a_channel_says_how_it_is_set_up(tmp_path: Path):
    assert "telegram" in typed(tmp_path, "gateway", "setup").out
    assert "@BotFather" in typed(tmp_path, "gateway", "setup", "telegram").out
    with pytest.raises(ConfigError, match="no channel"):
        typed(tmp_path, "gateway", "setup", "carrier-pigeon")


def test_a_unit_for_systemd_names_the_home(tmp_path: Path):
    assert f"HERMES_HOME={tmp_path}" in typed(tmp_path, "gateway", "install").out


def test_a_gateway_that_died_without_a_word_is_not_running(tmp_path: Path):
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    (tmp_path / "run").mkdir()
    for content in (f'{{"pid": {child.pid}, "started": 1, "channels": {{}}}}', "{"):
        (tmp_path / "run" / "gateway.json").write_text(content)
        assert "No gateway runs" in typed(tmp_path, "gateway", "status").out
    (tmp_path / "run" / "gateway.json").write_text(f'{{"pid": {os.getpid()}, "started": 1, "channels": {{}}}}')
    assert "No channel is switched on" in typed(tmp_path, "gateway", "status").out
