"""What is typed into a shell is judged like a command; what other programs read is not."""

from __future__ import annotations

import pytest

from hermes_agent.tools.danger.feeding import judge_input
from hermes_agent.tools.danger.verdict import Where

HERE = Where(folder="/work/project", writable=("/work/project", "/tmp"))


@pytest.mark.parametrize(
    "running", ["bash", "sh -i", "env X=1 zsh", "sudo -i", "ssh host", "docker exec -it x ash", "$SHELL"]
)
def test_a_shell_is_asked_for_as_a_command_is(running: str) -> None:
    assert judge_input(running, "ls -l\n", HERE).asks == ()
    assert judge_input(running, "rm -rf build\n", HERE).asks
    assert judge_input(running, "rm -rf /\n", HERE).blocked


@pytest.mark.parametrize("data", ["rm -r", "ls", "ls \\\n", "echo a\x15rm b\n", "\x03rm -rf x\n", "a\x7fb\n"])
def test_parts_of_lines_and_keys_that_change_them_are_asked_about(data: str) -> None:
    assert judge_input("bash", data, HERE).asks


@pytest.mark.parametrize("data", ["\x03", "\x04", "\x03\x03", "exit\n", ""])
def test_interrupts_and_plain_lines_are_not(data: str) -> None:
    assert judge_input("bash", data, HERE) == judge_input("cat", data, HERE)
    assert not judge_input("bash", data, HERE).asks


def test_a_program_for_an_interpreter_is_asked_about_and_input_for_a_script_is_not() -> None:
    assert judge_input("python3 -i", "import os\n", HERE).asks
    assert not judge_input("python3 ask.py", "rm -rf /\n", HERE).asks
    assert not judge_input("./install", "y\n", HERE).asks
    assert not judge_input("python3", "\x04", HERE).asks


def test_a_command_that_cannot_be_read_may_be_a_shell() -> None:
    assert judge_input("bash -c 'never ends", "rm -rf build\n", HERE).asks
