"""The script of the supervisor survives being sent as words or as a line; `test_shells.py` has what it says."""

import subprocess
from pathlib import Path

from hermes_agent.sandbox.transport import FolderWays, Transport, line, supervisor, words


def test_a_line_means_the_same_as_the_words():
    asked = ["start", "/records", "g/a", "", "no", "/no/ho st'name", "", "plain", "0"]

    by_words = subprocess.run(words(asked), capture_output=True, check=True, input=b"").stdout
    by_line = subprocess.run(["sh", "-c", line(asked)], capture_output=True, check=True, input=b"").stdout

    assert by_words == by_line == b"nodir /no/ho st'name\n"


def test_no_comment_is_sent():
    assert not [each for each in supervisor().splitlines() if each.lstrip().startswith("#")]


def ways(folder: Path) -> FolderWays:
    async def begin(path: str) -> Transport:
        raise AssertionError(path)

    return FolderWays(folder / "groups", begin)


def test_a_group_stays_where_it_began(tmp_path: Path):
    assert ways(tmp_path).folder_of("g") == ""

    assert ways(tmp_path).folder_of("g", "/work") == "/work"

    assert ways(tmp_path).folder_of("g") == "/work"
    assert ways(tmp_path).folder_of("g", "/other") == "/work"
