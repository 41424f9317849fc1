"""A gateway that stands still says so, gives systemd no sign of life, is ended by it, and goes on when it is back."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import apsw
import pytest

from hermes_agent.providers.demo.script import Answer, Pace, Say
from hermes_agent.testing.model_servers import openai_model, serving
from tests.cli.shell import ROOT, program
from tests.doubles.telegram import TOKEN, telegram
from tests.gateway.harness import eventually

WATCHDOG = 15.0
"""Seconds without a sign of life after which the service is ended; a status is asked for within them."""


class Systemd:
    """Starts a service and ends it, by SIGABRT and then SIGKILL, where it is silent for too long; starts it again."""

    def __init__(self, argv: list[str], home: Path) -> None:
        self._argv = argv
        self._folder = home
        self.ready = 0
        self.ends: list[int] = []
        self.signs = 0
        self.pid = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(str(self._folder / "notify"))
            notify.setblocking(False)
            task = asyncio.create_task(self._serve(notify))
            yield
            task.cancel()
            await asyncio.wait((task,))

    async def _serve(self, notify: socket.socket) -> None:
        variables = {
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "HERMES_HOME": str(self._folder),
            "HOME": str(self._folder),
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "NOTIFY_SOCKET": notify.getsockname(),
            "WATCHDOG_USEC": str(int(WATCHDOG * 1e6)),
        }
        while True:
            process = await asyncio.create_subprocess_exec(*self._argv, env=variables, stdout=subprocess.DEVNULL)
            self.pid = process.pid
            try:
                await self._watch(notify)
                process.send_signal(signal.SIGABRT)
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), 2)
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                self.ends.append(await process.wait())

    async def _watch(self, notify: socket.socket) -> None:
        """Return when nothing was heard for too long."""
        loop, patience = asyncio.get_running_loop(), 60.0
        with suppress(TimeoutError):
            while True:
                lines = (await asyncio.wait_for(loop.sock_recv(notify, 4096), patience)).decode().splitlines()
                if "READY=1" in lines:
                    self.ready += 1
                    patience = WATCHDOG
                self.signs += "WATCHDOG=1" in lines


def told(home: Path) -> list[str]:
    """What `hermes gateway status` says is not well."""
    gateway = json.loads(program("gateway", "status", "--json", home=home).out)["gateway"]
    return gateway["ailments"] if gateway else []


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("pool", "No thread has been free for"),
        ("loop", "its event loop is blocked"),
        ("database", "The database has not answered for"),
        ("stopped", "or the process was stopped"),
    ],
)
async def test_one_that_stands_still_is_ended_and_what_ran_goes_on(tmp_path: Path, how: str, words: str):
    slow = Answer(pieces=(Say("Here I am."),), pace=Pace(first=3.0))
    async with telegram() as double, serving(openai_model(lambda _: slow, keys=())) as model:
        (tmp_path / "config.yaml").write_text(
            f"model:\n  default: custom/m\n  base_url: {model.url}\ngateway:\n  channels:\n    telegram:\n"
            f"      enabled: true\n      owners: ['7']\n      options:\n        api_url: {double.url}\n"
        )
        stuck = [sys.executable, "-m", "tests.faults.programs.stuck_gateway", how, str(tmp_path / "word")]
        systemd = Systemd(stuck, tmp_path)
        async with systemd.running():
            await eventually(lambda: systemd.signs > 0 and systemd.ready == 1, 60)
            assert await asyncio.to_thread(told, tmp_path) == []
            await double.say("Are you there?", chat="7", user="7")
            await eventually(lambda: bool(model.asked), 30)

            other = apsw.Connection(str(tmp_path / "hermes.db"))
            match how:
                case "database":
                    other.execute("BEGIN EXCLUSIVE")
                case "stopped":
                    os.kill(systemd.pid, signal.SIGSTOP)
                case _:
                    (tmp_path / "word").touch()
            saw = asyncio.create_task(asyncio.to_thread(seen, tmp_path, words))
            await eventually(lambda: len(systemd.ends) == 1, 90)
            other.close()
            assert await saw

            await eventually(lambda: systemd.ready == 2, 60)
            await eventually(lambda: len(double.chats.of("7")) > 0, 60)
            await asyncio.sleep(1)
            assert [shown.text for shown in double.chats.of("7")] == ["Here I am."]
            assert await asyncio.to_thread(told, tmp_path) == []
            assert systemd.ends[0] in (-signal.SIGABRT, -signal.SIGKILL)


def seen(home: Path, words: str) -> bool:
    """Whether the status said so before the process was ended."""
    return any(words in text for _ in range(3) for text in told(home))
