"""On a machine with neither bubblewrap nor Landlock: who wants a wall is told so, and all but plain reading asks."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.core.messages import ToolResult
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from hermes_agent.sandbox.place import NO_WALL
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving_in_thread
from tests.children import Said, said_by, started
from tests.cli.chat.terminal import Terminal

PROGRAMS = "bash sh cat ls head wc grep pwd touch python3 env make git setsid mkfifo"
WITHOUT = str(Path(__file__).parents[1] / "sandbox/no_landlock.py")
HERMES = "import sys; from hermes_agent.cli.main import main; sys.exit(main())"
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


class Bare:
    """A home and a folder on such a machine, and a model that makes the calls of `wanted`."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self.home, self.work, self.bin, self.server = folder / "home", folder / "work", folder / "bin", server
        for each in (self.home, self.work, self.bin):
            each.mkdir()
        for name in PROGRAMS.split():
            (self.bin / name).symlink_to(str(shutil.which(name) or "/bin/false"))
        (self.work / "a.txt").write_text("text\n")
        (self.work / "Makefile").write_text("all:\n\ttouch made\n")
        (self.home / "config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {server.url}\n")

    def hermes(self, *words: str) -> Said:
        before = [sys.executable, WITHOUT]
        child = started(*words, home=self.home, folder=self.work, before=before, PATH=str(self.bin))
        return said_by(child)


wanted: list[Call] = []


def script(heard: Heard) -> list[Piece]:
    made = sum(message.role == "assistant" for message in heard.messages)
    return [wanted[made]] if made < len(wanted) else [Say("Done.")]


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Bare]:
    wanted.clear()
    with serving_in_thread(openai_model(script, keys=())) as server:
        yield Bare(tmp_path, server)


def test_unattended_nothing_but_plain_reading_runs_and_the_first_run_says_why(bare: Bare) -> None:
    wanted[:] = [Call("terminal", {"command": command}) for command in (*READS, *ASKS)]
    wanted.append(Call("execute_code", {"code": "open('made', 'w')"}))

    first, second = bare.hermes("-z", "Hi"), bare.hermes("-z", "Hi")

    results = [part.text for part in heard(bare) if isinstance(part, ToolResult)]
    assert all("[exit " in said for said in results[: len(READS)]), results
    assert all("needs a person's approval" in said for said in results[len(READS) :]), results
    assert all("no wall can be had here" in said for said in results[len(READS) : -1]), results
    assert len(results) == len(READS) + len(ASKS) + 1
    assert {path.name for path in bare.work.iterdir()} == {"a.txt", "Makefile"}
    assert (first.code, first.err.count(NO_WALL)) == (0, 1), first
    assert (second.code, second.err.count(NO_WALL)) == (0, 0), second


def heard(bare: Bare) -> list[object]:
    return [part for message in bare.server.asked[-1].messages for part in message.parts]


def test_a_chat_says_so_shows_it_and_asks(bare: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(bare.bin))
    wanted[:] = [Call("terminal", {"command": command}) for command in ("cat a.txt", "touch made", "touch other")]

    with Terminal(
        home=bare.home, folder=bare.work, columns=130, program=(WITHOUT, sys.executable, "-c", HERMES)
    ) as chat:
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


def test_setup_and_doctor_say_so(bare: Bare) -> None:
    (bare.home / "config.yaml").unlink()

    setup = bare.hermes("setup", "--no-local", "--non-interactive")
    doctor = bare.hermes("doctor", "--offline")

    assert (setup.code, setup.err.count(NO_WALL)) == (0, 1), setup
    assert NO_WALL in doctor.out, doctor


@pytest.mark.parametrize(("jail", "words"), [("any", "cannot be jailed here"), ("none", "")])
def test_whoever_says_more_than_auto_is_not_told(bare: Bare, jail: str, words: str) -> None:
    with (bare.home / "config.yaml").open("a") as config:
        config.write(f"terminal: {{jail: {jail}}}\n")
    wanted[:] = [Call("terminal", {"command": "touch made"})]

    said = bare.hermes("-z", "Hi")

    assert NO_WALL not in said.err
    assert words in "".join(part.text for part in heard(bare) if isinstance(part, ToolResult))
    assert (bare.work / "made").exists() is (jail == "none")
