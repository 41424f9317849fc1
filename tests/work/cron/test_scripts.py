"""Scripts of jobs: where they stand, and what they say."""

from pathlib import Path

import pytest

from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.place import Command
from hermes_agent.store.work.cron.records import Instant
from hermes_agent.testing.place import FakePlace
from hermes_agent.work.cron.firing import LARGEST, Broken, Output, Scripts, command_of

INSTANT = Instant(job="j1", due=100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    return tmp_path / "scripts"


@pytest.mark.parametrize(("name", "run"), [("a.py", 'python3 "$f"'), ("a.sh", 'sh "$f"'), ("a", 'sh "$f"')])
def test_a_script_runs_by_its_name(folder: Path, name: str, run: str):
    (folder / name).write_text("hello")
    assert f"\n{run}\n" in command_of(folder, name)
    (folder / "own").write_text("#!/bin/true")
    assert '\n"$f"\n' in command_of(folder, "own")


def test_a_script_outside_its_folder_or_too_large_is_refused(folder: Path):
    (folder / "large.sh").write_text("x" * (LARGEST + 1))
    (folder / "binary.sh").write_bytes(b"\xff\xfe")
    (folder / "link.sh").symlink_to("/etc/hostname")
    for name in ("large.sh", "binary.sh"):
        with pytest.raises(Broken, match="cannot be run"):
            command_of(folder, name)
    for name in ("link.sh", "../x.sh", "/etc/hostname", "", "a\0b"):
        with pytest.raises(Broken, match="is not in"):
            command_of(folder, name)


@pytest.mark.parametrize(
    ("said", "wakes"),
    [
        ("", True),
        ("news", True),
        ('news\n{"wakeAgent": false}\n', False),
        ('{"wakeAgent": true}', True),
        ('{"wakeAgent": 0}', True),
        ("[1]", True),
        ('{"wakeAgent": false}\nnews', True),
    ],
)
def test_only_a_last_line_that_says_so_lets_the_agent_sleep(said: str, wakes: bool):
    assert Output(text=said, code=0).wakes is wakes


def test_a_failure_is_a_sentence_with_the_end_of_the_output():
    assert Output(text="fine", code=0).failure("a.sh") == ""
    assert Output(text="no disk\n", code=3).failure("a.sh") == "The script a.sh ended with 3. no disk"
    assert "nobody saw how" in Output(text="", code=None).failure("a.sh")


async def test_a_script_that_was_started_before_is_found_and_not_started_again(folder: Path):
    (folder / "a.sh").write_text("hello")
    place = FakePlace()
    scripts = Scripts(place=place, folder=folder, seconds=5.0)
    first = await scripts.run("a.sh", INSTANT, "/work")
    again = await scripts.run("a.sh", INSTANT, "/work")
    assert (first, len(place.started)) == (again, 1)
    assert isinstance(place.started[0].command, Command)


async def test_a_script_whose_starter_died_before_it_began_is_started_again(folder: Path):
    (folder / "a.sh").write_text("echo hello")
    place = LocalPlace(folder=folder.parent / "exec", env={"PATH": "/usr/bin:/bin"}, begin_seconds=0.1)
    (claimed := folder.parent / "exec" / "cron" / "j1-100").mkdir(parents=True)
    (claimed / "out").touch()
    found = await Scripts(place=place, folder=folder, seconds=5.0).run("a.sh", INSTANT, str(folder))
    assert (found.text, found.code) == ("hello\n", 0)
