"""`hermes gateway setup telegram` from the token to the first answer, with the double of the platform."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hermes_agent.core.errors import ConfigError, HermesError, Stopped
from hermes_agent.host.inbound.listener import serve_in_thread
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.cli.shell import PROGRAM, ROOT, typed
from tests.doubles.telegram import TOKEN, TelegramDouble
from tests.gateway.harness import eventually
from tests.measured import measured

TWO_MINUTES = 120.0
ENV = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src")}


@pytest.fixture
def double() -> Iterator[TelegramDouble]:
    made = TelegramDouble()
    with serve_in_thread(made.handle) as server:
        made.server = server
        yield made


def config(home: Path, double: TelegramDouble, model: str = "demo/scripted", url: str = "") -> None:
    where = f"  base_url: {url}\n" if url else ""
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(
        f"model:\n  default: {model}\n{where}gateway:\n  channels:\n    telegram:\n      options:\n"
        f"        api_url: {double.url}\n"
    )


async def line_with(stream: asyncio.StreamReader, words: str) -> str:
    while line := (await stream.readline()).decode():
        if words in line:
            return line
    raise AssertionError(f"it never said {words!r}")


@pytest.mark.slow
async def test_one_command_leads_from_the_token_to_the_first_answer(tmp_path: Path, double: TelegramDouble) -> None:
    home = tmp_path / "home"
    began = time.monotonic()
    with serving_in_thread(openai_model([Say("Hello, Ann.")], keys=())) as model:
        config(home, double, "custom/m", model.url)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            PROGRAM,
            "gateway",
            "setup",
            "telegram",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**ENV, "HOME": str(tmp_path), "HERMES_HOME": str(home), **measured()},
        )  # fmt: skip - the words of the command on one line
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            process.stdin.write(f"wrong-token\n{TOKEN}\n".encode())
            assert "That does not work yet" in await line_with(process.stderr, "does not work")
            assert "Write to @hermes_bot now" in await line_with(process.stderr, "Write to")
            await double.say("Hi there", chat="9", user="9", name="Eve")
            assert "Eve (id 9) wrote: Hi there" in await line_with(process.stderr, "wrote")
            process.stdin.write(b"n\n")
            await double.say("It is me", chat="7", user="7")
            assert "Ann (id 7) wrote: It is me" in await line_with(process.stderr, "Ann")
            process.stdin.write(b"y\nn\n")
            said, _ = await process.communicate()
            assert process.returncode == 0
            assert "Ann owns this agent on Telegram." in said.decode()
            await eventually(lambda: any("Hello, Ann." in each.text for each in double.chats.of("7")))
            assert time.monotonic() - began < TWO_MINUTES
        finally:
            await asyncio.to_thread(stop, home)
    kept = yaml.safe_load((home / "config.yaml").read_text())["gateway"]["channels"]["telegram"]
    assert (kept["enabled"], kept["owners"], str(kept["home"])) == (True, ["7"], "7")
    assert TOKEN in (home / ".env").read_text()
    assert "I do not know you yet" in double.chats.of("9")[0].text, "a stranger's message is not lost either"


def stop(home: Path) -> None:
    try:
        typed(home, "gateway", "stop")
    except HermesError as error:
        assert "No gateway runs" in str(error)


def test_a_wrong_token_is_asked_again_and_leaving_keeps_what_was_good(tmp_path: Path, double: TelegramDouble) -> None:
    config(tmp_path, double)
    with pytest.raises(Stopped, match="hermes gateway setup telegram` goes on"):
        typed(tmp_path, "gateway", "setup", "telegram", stdin="wrong\n")
    assert not (tmp_path / ".env").exists()


def test_the_steps_by_hand_and_an_unknown_channel(tmp_path: Path) -> None:
    said = typed(tmp_path, "gateway", "setup", "email", "--steps")
    assert said.out.startswith("1. Make a mailbox for the agent alone")
    assert "hermes pairing approve CODE --owner" in said.out
    assert json.loads(typed(tmp_path, "gateway", "setup", "--json").out)["channels"][0] == "discord"
    with pytest.raises(ConfigError, match="Did you mean `telegram`"):
        typed(tmp_path, "gateway", "setup", "telegramm")
