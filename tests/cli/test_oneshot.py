"""One question from the command line, as a process of its own."""

import json
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hermes_agent.agent.loop import STILL_CUT
from hermes_agent.cli.oneshot import GO_ON, PRINTED, progress_line
from hermes_agent.core.events import RunStarted, ToolEnded
from hermes_agent.core.messages import Message, Role, StopReason, Text, ToolResult
from hermes_agent.providers.demo.script import Answer, Heard, Say
from hermes_agent.testing.faults import Hang, Status
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving_in_thread
from tests.children import Said, said_by, started
from tests.cli.shell import program, typed


class Shell:
    """A person's shell in front of a model."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.server: ModelServer | None = None
        self.script = lambda heard: Say(f"Reply {len(heard.messages)} of {heard.model}.")

    def begin(self, *arguments: str) -> subprocess.Popen[bytes]:
        return started(*arguments, home=self.home, folder=self.work)

    def run(self, *arguments: str) -> Said:
        return said_by(self.begin(*arguments))

    def answer(self, heard: Heard) -> object:
        return self.script(heard)

    def asked(self, count: int) -> None:
        """Return when the model was asked so often."""
        while len(self.server.exchanges) < count:
            threading.Event().wait(0.01)

    def accepted(self, count: int) -> None:
        """Return when so many messages are in the inbox."""
        with closing(sqlite3.connect(self.home / "hermes.db")) as database:
            while database.execute("SELECT count(*) FROM inbox").fetchone() != (count,):
                threading.Event().wait(0.01)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    for folder in (shell.home, shell.work):
        folder.mkdir()
    with serving_in_thread(openai_model(shell.answer, keys=())) as server:
        shell.server = server
        (shell.home / "config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {server.url}\n")
        yield shell


def test_only_the_reply_is_on_standard_output(shell: Shell):
    assert shell.run("-z", "Hi") == Said(code=0, out="Reply 1 of m.\n", err="")


def test_the_model_is_told_that_its_reply_is_printed_and_that_nobody_answers(shell: Shell):
    shell.run("-z", "Hi")

    (told,) = [note for note in shell.server.asked[0].notes if PRINTED in note]
    assert "Nobody answers questions" in told


def test_a_conversation_is_continued_by_folder_id_or_title(shell: Shell):
    shell.run("-z", "Hi")
    session = json.loads(shell.run("--json", "-c", "-z", "And?").out.splitlines()[0])["session"]

    assert shell.run("-r", session, "-z", "More").out == "Reply 5 of m.\n"
    assert shell.run("-z", "Anew").out == "Reply 1 of m.\n"


def test_a_model_that_is_named_is_asked_also_when_a_conversation_goes_on(shell: Shell):
    shell.run("-z", "Hi")

    assert shell.run("-c", "-m", "custom/other", "-z", "And?").out == "Reply 3 of other.\n"
    assert shell.run("-c", "-z", "And?").out == "Reply 5 of other.\n"


def test_every_event_is_a_line_of_json(shell: Shell):
    lines = [json.loads(line) for line in shell.run("--json", "-z", "Hi").out.splitlines()]

    assert [line["number"] for line in lines] == sorted(line["number"] for line in lines)
    assert {"session", "number", "run", "at", "event"} == set(lines[0])
    assert lines[-1]["event"]["kind"] == "run_ended"
    assert lines[-1]["event"]["text"] == "Reply 1 of m."


def test_what_fails_is_said_beside_the_output_with_its_exit_code(shell: Shell):
    shell.script = lambda heard: Status(401, "Incorrect API key")
    said = shell.run("-z", "Hi")

    assert (said.code, said.out) == (5, "")
    assert "Incorrect API key" in said.err


def test_a_limit_has_its_exit_code(shell: Shell):
    with (shell.home / "config.yaml").open("a") as file:
        file.write("agent:\n  max_seconds: 0.2\n")
    shell.script = lambda heard: Hang(headers=False)
    said = shell.run("-z", "Hi")

    assert said.code == 6
    assert said.out == ""
    assert said.err == 'Stopped: the time limit (`agent.max_seconds`) was reached.\n`hermes -c -z ""` resumes it.\n'


def test_without_a_model_no_session_is_begun(tmp_path: Path):
    said = program("-z", "Hi", home=tmp_path)

    assert (said.code, said.out) == (3, "")
    assert "There are no sessions yet" in typed(tmp_path, "sessions", "list").err


def test_there_may_be_nothing_to_resume(shell: Shell):
    shell.run("-z", "Hi")

    assert shell.run("-c", "-z", "") == Said(
        code=0, out="", err="Nothing to resume: the last run of this session is complete.\n"
    )


def test_a_session_that_is_not_there_is_told(shell: Shell):
    said = shell.run("-r", "nothing", "-z", "Hi")

    assert said.code == 1
    assert 'No session has the id or title "nothing".' in said.err


def test_an_interrupt_stops_the_run(shell: Shell):
    shell.script = lambda heard: Hang(headers=False)
    child = shell.begin("-z", "Hi")
    shell.asked(1)
    child.send_signal(signal.SIGINT)

    assert said_by(child) == Said(code=130, out="", err="Stopped.\n")
    shell.script = lambda heard: Say("Here.")
    assert shell.run("-c", "-z", "").out == "Here.\n"


def test_an_interrupt_of_one_who_only_watches_ends_the_watching(shell: Shell):
    """The run is in another process, and goes on there."""
    shell.script = lambda heard: Hang(headers=False)
    runner = shell.begin("-z", "Hi")
    shell.asked(1)
    watcher = shell.begin("--json", "-c", "-z", "Me too")
    shell.accepted(2)
    watcher.send_signal(signal.SIGINT)

    assert said_by(watcher).code == 130
    assert runner.poll() is None
    runner.send_signal(signal.SIGINT)
    assert said_by(runner).code == 130


def test_a_command_that_failed_is_red_in_the_progress():
    def ended(text: str) -> ToolEnded:
        result = ToolResult(call_id="c", name="terminal", parts=(Text(text=text),))
        message = Message(role=Role.TOOL, parts=(result,))
        return ToolEnded(turn=1, call_id="c", tool="terminal", message=message, is_error=False, seconds=1.0)

    assert progress_line(ended("E: no\n[exit 2, 1.0 s]")) == "\x1b[31m✗ terminal: exit 2\x1b[0m"
    assert progress_line(ended("fine\n[exit 0]")) == ""
    assert progress_line(RunStarted()) == ""


def test_a_reply_that_stays_cut_is_whole_on_standard_output_and_told_as_cut_beside_it(shell: Shell):
    shell.script = lambda heard: Answer(pieces=(Say(f"part {len(heard.messages)}, "),), stop=StopReason.LENGTH)

    said = shell.run("-z", "Sing")
    events = [json.loads(line) for line in shell.run("-z", "Sing", "--json").out.splitlines()]
    told = json.loads(shell.run("-z", "Sing", "--json=result").out)

    assert (said.code, said.out) == (6, "part 1, part 3, part 5, part 7, \n")
    assert said.err == f"{STILL_CUT.replace('`/continue`', GO_ON)}\n"
    assert (events[-1]["event"]["outcome"], events[-1]["event"]["reason"]) == ("limit", "length limit")
    assert (told["reply"], told["problem"], told["exit_code"]) == (said.out[:-1], said.err[:-1], 6)


def test_a_reply_whose_last_piece_stands_in_the_words_beside_it_is_told_whole(shell: Shell):
    shell.script = lambda _: Answer(pieces=(Say("is "),), stop=StopReason.LENGTH)

    assert shell.run("-z", "Sing").out == "is is is is \n"
