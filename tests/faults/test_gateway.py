"""The gateway is killed again and again while a platform fails, tells things twice and drops its answers."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hermes_agent.host.serve import serve
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.testing.doubles.platform import Shown, Trouble
from hermes_agent.testing.doubles.telegram import TOKEN, TelegramDouble
from hermes_agent.testing.model_servers import openai_model, serving
from tests.cli.shell import PROGRAM, ROOT
from tests.gateway.house import eventually

CHATS, MESSAGES, KILLS = 12, 60, 5
TROUBLES = (Trouble.BUSY, Trouble.BROKEN, Trouble.DEAF)
MARK = "may be a repeat"


def repeat(heard: Heard) -> Say:
    return Say("re: " + heard.messages[-1].text.strip().splitlines()[-1])


def numbers(shown: Shown) -> set[int]:
    return {int(word[1:]) for word in shown.text.split() if word[:1] == "m" and word[1:].isdigit()}


def started(home: Path) -> subprocess.Popen[bytes]:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "src"),
        "TELEGRAM_BOT_TOKEN": TOKEN,
        "HERMES_HOME": str(home),
    }
    command = [sys.executable, "-c", PROGRAM, "gateway", "run"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def burst(double: TelegramDouble, first: int, chance: random.Random) -> None:
    """A part of the messages, some of them told twice, and what goes wrong meanwhile."""
    for number in range(first, first + MESSAGES // KILLS):
        await double.say(f"m{number}", chat=str(number % CHATS + 1))
        if chance.random() < 0.1:
            await double.again()
    for _ in range(3):
        double.chats.order(chance.choice(TROUBLES), "send")


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_every_message_is_answered_in_order_and_what_came_twice_is_marked(tmp_path: Path):
    double, chance = TelegramDouble(), random.Random(1)
    async with serve(double.handle) as double.server, serving(openai_model(repeat, keys=())) as model:
        (tmp_path / "config.yaml").write_text(
            f"model:\n  default: custom/m\n  base_url: {model.url}\ngateway:\n  channels:\n    telegram:\n"
            "      enabled: true\n      guests: ['*']\n      busy: queue\n"
            f"      options:\n        api_url: {double.url}\n"
        )
        process = started(tmp_path)
        for first in range(0, MESSAGES, MESSAGES // KILLS):
            await burst(double, first, chance)
            await asyncio.sleep(4)  # The gateway is somewhere in the middle of its work.
            process.send_signal(signal.SIGKILL)
            process.wait()
            process = started(tmp_path)

        await eventually(
            lambda: set().union(*map(numbers, double.chats.messages.values())) == set(range(MESSAGES)), 120.0
        )
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait, 30)

    plain = [shown for shown in double.chats.messages.values() if MARK not in shown.text]
    twice = [number for number, count in Counter(n for shown in plain for n in numbers(shown)).items() if count > 1]
    assert twice == []
    for chat in range(1, CHATS + 1):
        told = [n for shown in plain if shown.chat == str(chat) for n in sorted(numbers(shown))]
        assert told == sorted(told)
