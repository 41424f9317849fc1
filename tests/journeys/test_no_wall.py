"""On a machine with neither bubblewrap nor Landlock: who wants a wall is told so, and all but plain reading asks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Call
from hermes_agent.sandbox.place import NO_WALL
from tests.children import HERMES
from tests.cli.chat.terminal import Terminal
from tests.journeys.machine import Machine, machine

READS = [
    "cat a.txt",
    "ls -l",
    "head -n 1 a.txt | wc -l",
    "cat a.txt 2>/dev/null",
    "pwd",
    "cd /tmp && ls",
    "grep x a.txt",
]
ASKS = [
    "touch made",
    "echo x >made",
    "cat a.txt >made",
    'python3 -c \'open("made", "w")\'',
    "make",
    "git init made",
    "env cat a.txt",
    "bash made.sh",
    "ls $(touch made)",
    "cat a.txt | sh",
]


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Machine]:
    with machine(tmp_path) as made:
        (made.work / "a.txt").write_text("text\n")
        (made.work / "Makefile").write_text("all:\n\ttouch made\n")
        yield made


def test_unattended_nothing_but_plain_reading_runs_and_the_first_run_says_why(bare: Machine) -> None:
    bare.calls[:] = [Call("terminal", {"command": command}) for command in (*READS, *ASKS)]
    bare.calls.append(Call("execute_code", {"code": "open('made', 'w')"}))

    first, second = bare.hermes("-z", "Hi"), bare.hermes("-z", "Hi")

    results = bare.results()
    assert all("[exit " in said for said in results[: len(READS)]), results
    assert all("needs a person's approval" in said for said in results[len(READS) :]), results
    assert all("no wall can be had here" in said for said in results[len(READS) : -1]), results
    assert len(results) == len(READS) + len(ASKS) + 1
    assert {path.name for path in bare.work.iterdir()} == {"a.txt", "Makefile"}
    assert (first.code, first.err.count(NO_WALL)) == (0, 1), first
    assert (second.code, second.err.count(NO_WALL)) == (0, 0), second


def test_a_chat_says_so_shows_it_and_asks(bare: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(bare.bin))
    bare.calls[:] = [Call("terminal", {"command": command}) for command in ("cat a.txt", "touch made", "touch other")]

    program = (*bare.below, sys.executable, "-P", "-c", HERMES)
    with Terminal(home=bare.home, folder=bare.work, columns=130, program=program) as chat:
        chat.wait_for(NO_WALL, "! no wall")
        chat.send("Hi\r")
        chat.wait_for("May I run this?", "No wall can be had here to hold", "touch made")
        assert not (bare.work / "made").exists()
        chat.send("o\r")
        chat.wait_for("touch other")
        chat.send("d\r")
        chat.wait_for("Done.")

    assert (bare.work / "made").exists()
    assert not (bare.work / "other").exists()


def test_setup_and_doctor_say_so(bare: Machine) -> None:
    (bare.home / "config.yaml").unlink()

    setup = bare.hermes("setup", "--no-local", "--non-interactive")
    doctor = bare.hermes("doctor", "--offline")

    assert (setup.code, setup.err.count(NO_WALL)) == (0, 1), setup
    assert NO_WALL in doctor.out, doctor


@pytest.mark.parametrize(("jail", "words"), [("any", "cannot be jailed here"), ("none", "")])
def test_whoever_says_more_than_auto_is_not_told(bare: Machine, jail: str, words: str) -> None:
    bare.configure(f"terminal: {{jail: {jail}}}\n")
    bare.calls[:] = [Call("terminal", {"command": "touch made"})]

    said = bare.hermes("-z", "Hi")

    assert NO_WALL not in said.err
    assert words in "".join(bare.results())
    assert (bare.work / "made").exists() is (jail == "none")
