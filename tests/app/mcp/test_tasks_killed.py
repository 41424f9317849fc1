"""`kill -9` of Hermes while a server works on a task: the task is taken up again, and never begun twice."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.testing.model_servers import KEY, openai_model, serving_in_thread
from tests.app.mcp.calling import TASKS
from tests.children import said_by, started
from tests.cli.shell import typed

CONFIG = """\
model: {{default: custom/m, base_url: '{model}'}}
approvals: {{mode: 'off'}}
mcp_servers: {{t: {{url: 'http://127.0.0.1:{port}/mcp'}}}}
"""


def script(heard: Heard) -> Call | Say:
    name = heard.messages[0].text.split()[-1]
    if heard.turn:
        return Say(heard.last.parts[0].parts[0].text)
    return Call("use_tool", {"name": "mcp__t__work", "arguments": {"seconds": 1.5, "name": name}})


@contextmanager
def serving_tasks(folder: Path) -> Iterator[int]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    with subprocess.Popen([sys.executable, str(TASKS), str(folder), str(port)], stderr=subprocess.PIPE) as running:
        try:
            assert running.stderr is not None
            while b"running on" not in running.stderr.readline():
                assert running.poll() is None
            yield port
        finally:
            running.kill()


def lines(path: Path) -> list[str]:
    return path.read_text().split("\n")[:-1] if path.exists() else []


def killed_at_work(home: Path, work: Path, number: int, later: float) -> None:
    """Begin a run, and kill it a moment after the server was asked how its task stands."""
    child = started("-z", f"Do n{number}", home=home, folder=work, CUSTOM_API_KEY=KEY)
    while len(set(lines(work / "looks"))) <= number:
        with suppress(subprocess.TimeoutExpired):
            raise AssertionError(child.communicate(timeout=0.02))
    with suppress(subprocess.TimeoutExpired):
        child.wait(later)
    child.kill()
    child.communicate()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_task_is_taken_up_after_a_kill_and_never_begun_twice(tmp_path: Path, full: bool):
    rounds, chance = 50 if full else 2, random.Random(5)
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir(), work.mkdir()
    with serving_in_thread(openai_model(script)) as model, serving_tasks(work) as port:
        (home / "config.yaml").write_text(CONFIG.format(model=model.url, port=port))
        typed(home, "mcp", "test", "t")
        replies = []
        for number in range(rounds):
            killed_at_work(home, work, number, chance.uniform(0, 0.6))
            replies.append(said_by(started("-c", "-z", "", home=home, folder=work, CUSTOM_API_KEY=KEY)).out.strip())

    assert replies == [f"did n{number}" for number in range(rounds)]
    assert len(lines(work / "starts")) == rounds
    assert lines(work / "ends") == []
