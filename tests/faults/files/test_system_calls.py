"""Each call of the system that a question makes in the home fails once: the reply comes, or a sentence with the error's
own name; never a traceback, and never that something broke."""

import errno
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Answer, Call, Heard, Say
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.children import SOURCE

FAILING = Path(__file__).with_name("failing_calls.py")
EVENTS = {
    "os.remove": errno.EIO,
    "os.rename": errno.EACCES,
    "os.scandir": errno.EIO,
    "os.listdir": errno.EMFILE,
    "os.mkdir": errno.ENOSPC,
    "open": errno.EMFILE,
}
SHORT = 2
"""How many of the calls of one kind fail in the short version."""


class Place:
    """A home that was used before, and a question that writes a file and runs a command."""

    def __init__(self, folder: Path) -> None:
        self.home, self.kept, self.work = folder / "home", folder / "kept", folder / "work"

    def run(self, event: str, number: int, error: int) -> subprocess.CompletedProcess[str]:
        if self.kept.exists():
            shutil.rmtree(self.home)
            shutil.copytree(self.kept, self.home)
        return subprocess.run(
            [sys.executable, str(FAILING), event, str(number), str(error), "-c", "-z", "look"],
            env={**os.environ, "HERMES_HOME": str(self.home), "PYTHONPATH": str(SOURCE)},
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def calls(self, event: str) -> int:
        """How many of those calls there are where none fails."""
        assert self.run(event, 1, 0).returncode == 0
        return int(self.home.with_name("home.calls").read_text())


def script(heard: Heard) -> Answer | Say:
    if heard.messages[-1].text.startswith("look"):
        calls = (Call("write_file", {"path": "a.txt", "content": "x"}), Call("terminal", {"command": "ls"}))
        return Answer(pieces=calls)
    return Say("Reply.")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp("calls"))
    place.home.mkdir()
    place.work.mkdir()
    with serving_in_thread(openai_model(script, keys=())) as server:
        (place.home / "config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {server.url}\n")
        assert place.run("none", 0, 0).stdout == "Reply.\n"
        shutil.copytree(place.home, place.kept)
        yield place


@pytest.mark.timeout(600)
@pytest.mark.parametrize("event", EVENTS)
def test_whatever_call_fails_there_is_a_reply_or_a_sentence_with_its_name(place: Place, event: str, full: bool):
    total, error = place.calls(event), EVENTS[event]
    assert total
    calls = range(1, total + 1)
    for number in calls if full else random.sample(calls, min(total, SHORT)):
        done = place.run(event, number, error)

        assert "Traceback" not in done.stderr, (number, done.stderr)
        assert "broke" not in done.stderr + done.stdout, number
        if done.returncode == 0:
            assert done.stdout == "Reply.\n"
        else:
            assert os.strerror(error) in done.stderr, (number, done.stderr)
