"""A home of the version before (the database's format 15) opens, and everything in it goes on. `tests/data/home.tar.xz`
was left by that program: an answered conversation, one that was killed during a command, and a recorded one."""

import tarfile
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from hermes_agent.store.migrations import newest
from hermes_agent.store.sqlite.opening import STEPS
from tests.cli.shell import program, typed

STORED = Path(__file__).parents[1] / "data/home.tar.xz"
ANSWERED, KILLED, RECORDED = "20261123_205314_b98cb7", "20261123_205324_cdab6c", "20261123_205331_0e217f"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    Path("/tmp/stored-work").mkdir(exist_ok=True)  # where its conversations were held
    with tarfile.open(STORED) as stored:
        stored.extractall(tmp_path / "home", filter="data")
    return tmp_path / "home"


def format_of(database: Path) -> int:
    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return int(connection.pragma("user_version"))


def test_its_database_is_upgraded_after_a_copy_and_its_settings_and_files_are_read(home: Path):
    assert format_of(home / "hermes.db") == 15

    listed = typed(home, "sessions", "list").out.splitlines()[1:]
    settings = typed(home, "config", "show")

    assert [line.split()[0] for line in listed] == [RECORDED, KILLED, ANSWERED]
    assert format_of(home / "hermes.db") == newest(STEPS)
    assert format_of(home / f"hermes.db.before-{newest(STEPS)}") == 15
    written = [line.split() for line in settings.out.splitlines() if "config.yaml:" in line]
    assert [row[:2] for row in written] == [
        ["model.default", "demo"],
        ["agent.max_turns", "40"],
        ["memory.provider", "holographic"],
        ["curator.keep", "3"],
    ]
    assert "tea, not coffee" in typed(home, "memory", "show").out
    assert "How tea is made." in typed(home, "skills", "list").out
    assert "fail" not in {line.split()[0] for line in typed(home, "doctor", "--offline").out.splitlines()}


@pytest.mark.slow
def test_its_conversations_go_on(home: Path):
    answered = program("-r", ANSWERED, "--yolo", "-z", "run `echo three`", home=home)
    killed = program("-r", KILLED, "-z", "Hello", home=home)

    assert "three" in answered.out, answered.err
    log = typed(home, "sessions", "show", ANSWERED).out
    assert log.index("Which Python files are here?") < log.index("one two") < log.index("three")
    assert "The run was interrupted. It resumes from its last committed step." in killed.err
    assert "scripted model" in killed.out


def test_its_recording_plays(home: Path):
    played = typed(home, "replay", str(home / "tea.jsonl")).out

    assert f"{RECORDED}: 1 run, 2 steps, 1 tool call.\nPlayed as recorded." in played
