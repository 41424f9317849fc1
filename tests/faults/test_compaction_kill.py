"""`kill -9` while a long conversation is being shortened: nothing of it is gone, and the next start makes it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hermes_agent.core.messages import Role
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from hermes_agent.testing.scripted import Step
from tests.cli.shell import PROGRAM, ROOT, program, typed

MOST_MESSAGES = 20


class Model:
    """Answers, and lets the first summary hang."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def __call__(self, heard: Heard) -> Step:
        if "You keep the record" not in heard.system:
            return Say(f"Answer {sum(message.role is Role.USER for message in heard.messages)}.")
        if self.asked.is_set():
            return Say("## Task\nCount the berths.")
        self.asked.set()
        return Hang()


def words(number: int) -> str:
    return f"Berth {number} belongs to captain Ostrander{number}. " + "Nothing else is new at the harbour. " * 200


@pytest.mark.timeout(120)
def test_a_kill_in_the_middle_of_a_compaction_loses_nothing(tmp_path: Path):
    home, model = tmp_path / "home", Model()
    home.mkdir()
    with serving_in_thread(openai_model(model, keys=())) as server:
        (home / "config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {server.url}\n  window: 8192\n")
        said = [words(0)]
        program("-z", said[0], home=home)
        while not model.asked.is_set() and len(said) < MOST_MESSAGES:
            said.append(words(len(said)))
            told(home, said[-1], model)
        assert model.asked.is_set()
        kinds = logged(home)

        last = program("-z", "Who has berth one?", "-c", home=home)

    assert "compacted" not in kinds
    assert last.out.startswith("Answer ")
    assert logged(home)[: len(kinds)] == kinds
    assert logged(home).count("compacted") == 1
    assert logged(home).count("message_taken") == len(said) + 1
    assert "Who has berth one?" in server.exchanges[-1].request.body.decode()
    for number in range(len(said)):
        assert f"**Ostrander{number}**" in typed(home, "sessions", "search", f"Ostrander{number}").out


def told(home: Path, text: str, model: Model) -> None:
    """One start of the program, killed as soon as a summary is asked for."""
    environment = {"PYTHONPATH": str(ROOT / "src"), "HERMES_HOME": str(home), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", PROGRAM, "-z", text, "-c"]
    child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while child.poll() is None:
        if model.asked.wait(0.05):
            child.kill()
            child.wait()


def logged(home: Path) -> list[str]:
    """The kinds of the events in the log."""
    session = typed(home, "sessions", "list").out.splitlines()[1].split()[0]
    lines = map(json.loads, typed(home, "sessions", "export", session, "--format", "jsonl").out.splitlines())
    return [line["event"]["kind"] for line in lines if "event" in line]
