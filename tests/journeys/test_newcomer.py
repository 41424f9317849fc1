"""A newcomer at a terminal: from `hermes setup` to the first useful answer, in keys and seconds."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.cli.shell import PROGRAM, ROOT
from tests.measured import measured, path_of

MOST_KEYS, MOST_SECONDS, PATIENCE = 8, 60.0, 20.0
DOWN, ENTER, LEAVE = "\x1b[B", "\r", "\x04"


class Terminal:
    """The real program at a terminal; `keys` counts those of a choice, not of typed words."""

    def __init__(self, home: Path, folder: Path, **variables: str) -> None:
        self.keys, self.seen = 0, ""
        self._own, other = pty.openpty()
        env = {"PATH": "/usr/bin:/bin", "TERM": "xterm", "HOME": str(folder.parent), "HERMES_HOME": str(home)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "setup", "--no-local"],
            stdin=other,
            stdout=other,
            stderr=other,
            cwd=folder,
            env={**env, "PYTHONPATH": path_of(ROOT / "src"), **measured(), **variables},
            start_new_session=True,
        )
        os.close(other)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._own)

    def sees(self, words: str) -> None:
        until = time.monotonic() + PATIENCE
        while words not in self.seen:
            assert time.monotonic() < until, f"{words!r} never came: {self.seen[-600:]!r}"
            if select.select([self._own], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self._own, 65536).decode(errors="replace").replace("\r\n", "\n")
                except OSError:
                    break
        assert words in self.seen
        self.seen = self.seen.partition(words)[2]

    def press(self, *keys: str) -> None:
        for key in keys:
            self.keys += 1
            os.write(self._own, key.encode())

    def type(self, words: str) -> None:
        os.write(self._own, words.encode())

    def ends(self) -> int:
        return self.process.wait(PATIENCE)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "project"
    made.mkdir()
    (made / "a.py").write_text("print(1)\n")
    yield made


@pytest.mark.slow
def test_a_local_server_answers_about_the_folder_within_a_minute_and_few_keys(tmp_path: Path, folder: Path) -> None:
    with serving_in_thread(
        openai_model(lambda _: Say("One Python file."), keys=(), models=("qwen", "llama"))
    ) as server:
        began = time.monotonic()
        with Terminal(tmp_path / "home", folder) as here:
            here.sees("Which model should answer?")
            here.press(DOWN, ENTER)
            here.sees("Address of the server")
            here.type(server.url.removeprefix("http://").removesuffix("/v1"))
            here.press(ENTER)
            here.sees("Which of its models?")
            here.press(ENTER)
            here.sees("It answers")
            here.sees("which folder shall it look at?")
            here.press(ENTER)
            here.sees("Do you trust the files")
            here.press("t", ENTER)
            here.sees("One Python file.")
            here.sees("`hermes -c` goes on from here")

            assert here.ends() == 0
            assert here.keys <= MOST_KEYS
            assert time.monotonic() - began < MOST_SECONDS


@pytest.mark.slow
def test_no_network_a_wrong_key_and_leaving_each_have_a_next_step(tmp_path: Path, folder: Path) -> None:
    with serving_in_thread(openai_model(lambda _: Say("Hello."), keys=("right",), models=("qwen",))) as server:
        with Terminal(tmp_path / "home", folder) as here:
            here.sees("Which model should answer?")
            here.press(DOWN, ENTER)
            here.sees("Address of the server")
            here.type("127.0.0.1:9\r")
            here.sees("could not be reached")
            here.sees("Which model should answer?")
            here.press(DOWN, ENTER)
            here.sees("Address of the server, such as 127.0.0.1:8000 [127.0.0.1:9]")
            here.press(LEAVE)
            here.sees("`hermes setup` goes on where you left, with what you typed.")
            assert here.ends() == 130
        with Terminal(tmp_path / "home", folder) as here:
            here.press(DOWN, ENTER)
            here.sees("Address of the server, such as 127.0.0.1:8000 [127.0.0.1:9]")
            here.type(f"{server.url}\r")
            here.sees("It wants a key (401).")
            here.sees("Key of this server")
            here.type("wrong\r")
            here.sees("It refused that key (401).")
            here.sees("Key of this server")
            here.type("right\r")
            here.sees("It answers")
            here.sees("which folder shall it look at?")
            here.press(LEAVE)

            assert here.ends() == 0
            assert "default: custom/qwen" in (tmp_path / "home/config.yaml").read_text()
