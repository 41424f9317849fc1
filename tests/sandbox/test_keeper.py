"""The keeper's script is one that a small shell understands, and survives being sent as words or as a line."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hermes_agent.sandbox.keeper import keeper, line, words

SHELLS = [["dash"], ["bash", "--posix"], ["busybox", "sh"]]


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_every_shell_runs_it(tmp_path: Path, shell: list[str]):
    if shutil.which(shell[0]) is None:
        pytest.skip(f"no {shell[0]} here")
    start = [*words(["start", str(tmp_path), "g/a", "", "no", str(tmp_path), "", "plain"])[1:]]

    done = subprocess.run([*shell, *start], input="{}\necho käse; exit 3\n".encode(), capture_output=True, check=True)

    begun, ended, _, output = done.stdout.split(b"\n", 3)
    assert begun.decode() == f"begun {tmp_path}"
    assert ended.startswith(b"ended 3 ")
    assert output == "käse\n".encode()


def test_a_line_means_the_same_as_the_words():
    asked = ["get", "/records", "/etc/ho st'name", "100"]

    by_words = subprocess.run(words(asked), capture_output=True, check=True).stdout
    by_line = subprocess.run(["sh", "-c", line(asked)], capture_output=True, check=True).stdout

    assert by_words == by_line == b"fail /etc/ho st'name cannot be read.\n"


def test_no_comment_is_sent():
    assert not [each for each in keeper().splitlines() if each.lstrip().startswith("#")]
