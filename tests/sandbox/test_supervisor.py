"""The script of the supervisor survives being sent as words or as a line; `test_shells.py` has what it says."""

import subprocess

from hermes_agent.sandbox.supervisor import line, supervisor, words


def test_a_line_means_the_same_as_the_words():
    asked = ["get", "/records", "/etc/ho st'name", "100"]

    by_words = subprocess.run(words(asked), capture_output=True, check=True).stdout
    by_line = subprocess.run(["sh", "-c", line(asked)], capture_output=True, check=True).stdout

    assert by_words == by_line == b"fail /etc/ho st'name cannot be read.\n"


def test_no_comment_is_sent():
    assert not [each for each in supervisor().splitlines() if each.lstrip().startswith("#")]
