"""`hermes gateway` and `send` as a person uses them, against the double of a platform."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes_agent.cli.commands.webhook import place_of
from hermes_agent.cli.gateway.unit import RUNNING
from hermes_agent.core.clock import SystemClock, moment
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.gateway.channel_runtime import made
from hermes_agent.gateway.state import read_states, state_of, write_state
from hermes_agent.host.inbound.listener import serve_in_thread
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.cli.shell import PROGRAM, ROOT, typed
from tests.doubles.telegram import TOKEN, TelegramDouble
from tests.gateway.harness import eventually
from tests.measured import measured

ENV = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"), "TELEGRAM_BOT_TOKEN": TOKEN, "HOME": "/nonexistent"}


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
            env={**os.environ, **ENV, "HERMES_HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert "telegram" in process.stdout.readline()
        yield process
        process.kill()
        process.wait()
        process.stdout.close()


async def type_(home: Path, *words: str) -> str:
    """What a command says, beside the loop of the test."""
    said = await asyncio.to_thread(typed, home, *words)
    return said.out + said.err


@pytest.mark.slow
async def test_a_stranger_is_let_in_and_answered_and_the_gateway_ends_when_asked(
    tmp_path: Path, double: TelegramDouble, running: subprocess.Popen[str]
):
    await double.say("Hi", chat="7", user="7")
    await eventually(lambda: bool(double.chats.of("7")))
    code = double.chats.of("7")[0].text.split("approve ")[1].split(" ")[0]
    assert "Ann" in await type_(tmp_path, "pairing", "list")
    assert "is admitted" in await type_(tmp_path, "pairing", "approve", code)
    await double.say("Hi again", chat="7", user="7")
    await eventually(lambda: len(double.chats.of("7")) == 2)
    assert double.chats.of("7")[1].text == "Hello."

    assert await type_(tmp_path, "send", "-t", "telegram:8", "News!") == "Sent.\n"
    assert double.chats.of("8")[0].text == "News!"
    status = json.loads(await type_(tmp_path, "gateway", "status", "--json"))
    assert status["gateway"]["channels"]["telegram"]["state"] == "listening"
    assert f"telegram  listening  {moment(SystemClock().now())[:5]}" in await type_(tmp_path, "gateway", "status")
    assert status["outbox"] == {"sent": 3}

    said = await type_(tmp_path, "gateway", "stop")
    assert "is stopping" in said
    assert "has stopped" in said
    assert await asyncio.to_thread(running.wait, 30) == 0
    assert "No gateway runs" in await type_(tmp_path, "gateway", "status")


@pytest.fixture
def home(tmp_path: Path, double: TelegramDouble) -> Iterator[Path]:
    """A home whose gateway in the background is ended with the test."""
    with serving_in_thread(openai_model([Say("Hello.")], keys=())) as model:
        (tmp_path / "config.yaml").write_text(
            f"model:\n  default: custom/m\n  base_url: {model.url}\ngateway:\n  channels:\n    telegram:\n"
            f"      enabled: true\n      owners: ['7']\n      options:\n        api_url: {double.url}\n"
        )
        yield tmp_path
        for state in read_states(Home(root=tmp_path, base=tmp_path)):
            os.kill(state.pid, signal.SIGKILL)


async def in_background(home: Path, *words: str) -> str:
    """What `hermes gateway` says on a home whose gateway lives in the background."""
    said = await asyncio.to_thread(typed, home, "gateway", *words, **{**ENV, **measured()})
    return said.out + said.err


def followed(home: Path) -> subprocess.Popen[str]:
    """`hermes gateway logs -f`, from now on."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "gateway", "logs", "-f", "-n", "0"],
        env={**os.environ, **ENV, "HERMES_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.timeout(90)
async def test_a_gateway_lives_in_the_background_and_begins_again_when_asked(home: Path, double: TelegramDouble):
    said = await in_background(home, "start")
    assert str(home / "logs/hermes.log") in said
    assert "telegram  listening" in said
    assert "its channels have 60 s to connect" in said
    with pytest.raises(HermesError, match="runs on this home already"):
        await in_background(home, "start")
    (first,) = read_states(Home(root=home, base=home))

    await double.say("/restart", chat="7", user="7")
    await eventually(lambda: len(double.chats.of("7")) == 2, 40)
    asked, back = double.chats.of("7")
    assert asked.text.startswith("Restarting")
    assert back.text.startswith("I am back")
    (second,) = read_states(Home(root=home, base=home))
    assert second.pid == first.pid
    assert second.started > first.started

    following = followed(home)
    assert following.stdout is not None
    assert (
        await asyncio.to_thread(following.stdout.readline) == "Nothing yet.\n"
    )  # Of what was there, nothing is wanted.
    assert f"runs again as process {first.pid}" in await in_background(home, "restart")
    assert "the gateway begins, with telegram" in await asyncio.to_thread(following.stdout.readline)
    following.kill()
    following.wait()
    following.stdout.close()
    assert "is reloading" in await in_background(home, "reload")
    await double.say("Hi", chat="7", user="7")
    await eventually(lambda: len(double.chats.of("7")) == 3)
    assert double.chats.of("7")[2].text == "Hello."
    assert len((await in_background(home, "logs")).splitlines()) >= 3
    assert "channel telegram: listening" in await in_background(home, "logs", "--json", "--since", "1h")
    assert await in_background(home, "logs", "--level", "critical") == "Nothing yet.\n"
    assert await in_background(home, "logs", "--level", "critical", "--json") == ""

    assert "runs on this home already" not in (home / "logs/gateway.out").read_text()
    assert "has stopped" in await in_background(home, "stop")


@pytest.mark.slow
async def test_a_gateway_that_cannot_begin_says_why(home: Path):
    text = (home / "config.yaml").read_text()
    (home / "config.yaml").write_text(text.replace("    telegram:", "    telegrm:"))

    for word in ("start", "restart"):
        with pytest.raises(HermesError, match="no channel `telegrm`"):
            await in_background(home, word)


@pytest.mark.slow
async def test_a_mistake_in_the_settings_is_told_when_a_gateway_begins_or_begins_again(home: Path):
    await in_background(home, "start")
    with (home / "config.yaml").open("a") as config:
        config.write("modell: {}\n")

    assert "unknown setting `modell`" in await in_background(home, "restart")
    assert "runs have 20 s to finish" in await in_background(home, "stop")
    assert "unknown setting `modell`" in await in_background(home, "start")
    assert "unknown setting `modell`" in (home / "logs/gateway.out").read_text()


@pytest.mark.slow
async def test_a_gateway_whose_token_is_refused_says_so_when_it_is_started(home: Path, double: TelegramDouble):
    said = await asyncio.to_thread(
        typed, home, "gateway", "start", **{**ENV, **measured(), "TELEGRAM_BOT_TOKEN": "1:x"}
    )

    async def stopped() -> bool:
        return "telegram  stopped" in await in_background(home, "status")

    assert "telegram  stopped" in said.out or await stopped()
    assert "telegram: stopped: Telegram: Unauthorized" in (home / "logs/gateway.out").read_text()


def test_without_a_gateway_a_message_waits(tmp_path: Path):
    (tmp_path / "a.txt").write_text("content")

    said = typed(tmp_path, "send", "-t", "telegram:-8:3", "--file", str(tmp_path / "a.txt"), stdin="From a pipe")

    assert "no gateway runs now" in said.out
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


def test_a_channel_says_how_it_is_set_up(tmp_path: Path):
    assert "telegram" in typed(tmp_path, "gateway", "setup").out
    assert "@BotFather" in typed(tmp_path, "gateway", "setup", "telegram", "--steps").out
    with pytest.raises(ConfigError, match="no channel"):
        typed(tmp_path, "gateway", "setup", "carrier-pigeon")


def test_what_the_setup_says_can_be_typed(tmp_path: Path):
    said = typed(tmp_path, "gateway", "setup", "slack", "--steps").out
    assert "`hermes secrets set SLACK_APP_TOKEN`, `hermes secrets set SLACK_BOT_TOKEN`" in said
    for words in ("slack.owners U7", "slack.enabled true", "telegram.groups -1001234567"):
        name, value = words.split()
        typed(tmp_path, "config", "set", f"gateway.channels.{name}", value)

    assert typed(tmp_path, "config", "get", "gateway.channels.telegram.groups").out == '["-1001234567"]\n'
    assert "gateway.channels.slack.owners ID" in said
    assert "gateway.channels.slack.enabled true" in said


def test_a_unit_for_systemd_names_the_home(tmp_path: Path):
    for words in (("--print",), ("--system", "--print")):
        said = typed(tmp_path, "gateway", "install", *words, HOME=str(tmp_path))
        assert f"HERMES_HOME={tmp_path}" in said.out
        assert not said.err


@pytest.mark.skipif(RUNNING.exists(), reason="systemd runs here")
def test_without_systemd_nothing_is_installed_and_that_is_said(tmp_path: Path):
    said = typed(tmp_path, "gateway", "install", HOME=str(tmp_path))

    assert "systemd does not run here" in said.err
    assert "hermes gateway start" in said.err
    assert not (tmp_path / ".config").exists()
    with pytest.raises(HermesError, match="There is no"):
        typed(tmp_path, "gateway", "uninstall", HOME=str(tmp_path))


def test_what_an_owner_may_want_to_know_of_a_channel_stands_below_its_state(tmp_path: Path):
    platform = FakePlatform()
    line = made(platform.kind(), platform.made(None), SystemClock())
    line.note = "device D, fingerprint abcd"
    state = replace(state_of(1.0, {"fake": line}), beside=("The API answers at http://127.0.0.1:1/v1",))
    write_state(Home(root=tmp_path, base=tmp_path), state)

    shown = typed(tmp_path, "gateway", "status").out
    assert "fake: device D, fingerprint abcd\n" in shown
    assert "The API answers at http://127.0.0.1:1/v1.\n" in shown
