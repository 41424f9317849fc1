"""What only a terminal has: journeys."""

import asyncio
import base64
from pathlib import Path

from hermes_agent.cli.chat.own_commands import MOST_TOLD, OwnCommand, Ran
from hermes_agent.core.messages import Message, Origin, Role, Text
from hermes_agent.core.shown import additions, words_of
from tests.cli.chat.conftest import Open

IDLE = " idle ·"


def test_an_own_command_is_shown_and_told_to_the_model(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("!echo one; echo two; exit 4\r")
    text = terminal.wait_for("· exit 4", "  one\n  two")
    assert "✗ ! echo one; echo two; exit 4" in text
    terminal.send("why?\r")

    terminal.wait_for("> why?\n  + ! echo one; echo two; exit 4 [exit 4], 2 lines", "! echo one", r"one\ntwo", IDLE)


def test_what_was_run_before_a_new_session_is_not_told_there(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("hello\r")
    terminal.wait_for("You said: 'hello'", IDLE)
    terminal.send("!echo secret-word\r")
    terminal.wait_for("✓ ! echo secret-word")
    terminal.send("/clear\r")
    terminal.wait_for("New session")

    terminal.send("again\r")

    terminal.wait_for("You said: 'again'", IDLE)


def test_escape_stops_an_own_command(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("!echo begun; sleep 300\r")
    terminal.wait_for("· begun")

    terminal.send("\x1b")

    terminal.wait_for("✗ ! echo begun; sleep 300", "exit 137", IDLE)
    terminal.send("hello\r")
    terminal.wait_for("exit 137, stopped", "You said:")


def test_files_are_attached_and_labelled(at_terminal: Open, project: Path):
    (project / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("see @a.txt\r")
    terminal.wait_for("> see @a.txt\n  + a.txt, 3 lines", r"a.txt:\none\ntwo\nthree", IDLE)
    terminal.send("see @bad.pdf\r")

    terminal.wait_for("bad.pdf cannot be read", "> see @bad.pdf\n idle")


def test_the_conversation_is_exported_and_never_over_a_file(at_terminal: Open, project: Path):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("/export\r")
    terminal.wait_for("Nothing was said yet")
    terminal.send("hello\r")
    terminal.wait_for("You said: 'hello'", IDLE)

    terminal.send("/export talk.md\r")
    terminal.wait_for("talk.md")
    terminal.send("/export talk.md\r")
    terminal.wait_for("exists. Name another file.")
    terminal.send("/export talk.doc\r")
    terminal.wait_for("Name a file that ends in .md, .html, .jsonl")

    assert "You said: 'hello'" in (project / "talk.md").read_text()
    assert "<runtime" not in (project / "talk.md").read_text()


def test_the_last_reply_is_copied(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("/copy\r")
    terminal.wait_for("There is no reply to copy yet.")
    terminal.send("hello\r")
    terminal.wait_for("You said: 'hello'", IDLE)

    terminal.send("/copy\r")
    terminal.wait_for("Copied 17 characters")

    assert b"\x1b]52;c;" + base64.b64encode(b"You said: 'hello'") in terminal.raw


def test_folded_output_is_unfolded_by_a_key_and_by_a_command(at_terminal: Open):
    terminal = at_terminal(rows=50)
    terminal.wait_for("new session")
    terminal.send("!seq 1 30\r")
    terminal.wait_for("… 21 more lines (Ctrl-O)")

    terminal.send("\x0f")
    terminal.wait_for("▾ ! seq 1 30", "  17\n")
    terminal.send("/output\r")

    terminal.wait_for("There is nothing more to unfold.")


def test_the_installation_is_checked_from_the_chat(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("/doctor\r")

    terminal.wait_for("python", "database", "hermes doctor --security")


ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


async def test_it_runs_in_the_folder_with_both_outputs_in_their_order(tmp_path: Path):
    seen: list[str] = []
    command = OwnCommand("pwd; echo oh >&2; echo $MARK; exit 3")

    ran = await command.run(str(tmp_path), {**ENVIRONMENT, "MARK": "mine"}, seen.append)

    assert ran.text == f"{tmp_path}\noh\nmine\n[exit 3]"
    assert [line.strip() for line in seen] == [str(tmp_path), "oh", "mine"]


async def test_it_has_no_input_and_a_stop_ends_all_that_it_started(tmp_path: Path):
    assert (await OwnCommand("cat").run(str(tmp_path), ENVIRONMENT, print)).text == "[exit 0]"
    command = OwnCommand("echo begun; sleep 300 & sleep 300")
    begun = asyncio.Event()

    async with asyncio.TaskGroup() as group:
        running = group.create_task(command.run(str(tmp_path), ENVIRONMENT, lambda _: begun.set()))
        await begun.wait()
        await command.stop()

    assert running.result().text == "begun\n[exit 137, stopped]"


async def test_a_very_long_line_and_a_very_long_output_are_bounded(tmp_path: Path):
    ran = await OwnCommand("head -c 300000 /dev/zero | tr '\\0' x; echo; seq 1 100000").run(
        str(tmp_path), ENVIRONMENT, lambda _: None
    )

    assert ran.output.endswith("100000\n")
    assert len(ran.output) < 300_000


def test_the_model_is_told_what_ran_and_what_it_said_as_outside_text():
    part = Ran(command="make", output="a" * (2 * MOST_TOLD), code=2).part(lambda text: text.replace("a", "b"))

    assert part.origin is Origin.TOOL
    assert part.text.startswith("! make [exit 2]:\nbbb")
    assert "20,000 characters are left out" in part.text
    message = Message(role=Role.USER, parts=(part, Text(text="why?", origin=Origin.OWNER)))
    assert (words_of(message), additions(message)) == ("why?", ["! make [exit 2], 3 lines"])
