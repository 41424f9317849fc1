"""`hermes replay`, `--record` and `--replay`, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shell import program, typed

FILE = "tape.jsonl"


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """A recording that the real program made with the scripted model."""
    home, file = tmp_path / "then", tmp_path / FILE
    home.mkdir()
    done = program("-m", "demo", "--record", str(file), "-z", "Which files are here?", home=home)
    assert (done.code, done.err) == (0, "")
    return file


def test_a_recording_plays_without_a_key_in_a_fresh_home(tape: Path, tmp_path: Path) -> None:
    said = typed(tmp_path / "fresh", "replay", str(tape))

    assert said.code == 0
    assert "Played as recorded." in said.out
    assert said.out.splitlines()[0].split() == ["STEP", "SESSION", "PURPOSE", "MODEL", "SECONDS", "WHAT", "CAME"]
    assert not (tmp_path / "fresh").exists()


def test_json_tells_steps_and_sessions(tape: Path, tmp_path: Path) -> None:
    told = json.loads(typed(tmp_path, "replay", str(tape), "--json").out)

    assert [step["step"] for step in told["steps"]] == list(range(1, len(told["steps"]) + 1))
    assert told["sessions"][0]["differences"] == []
    assert told["sessions"][0]["runs"] == 1


def test_what_differs_is_told_and_is_the_exit_code(tape: Path, tmp_path: Path) -> None:
    lines = tape.read_text().splitlines(keepends=True)
    changed = [line.replace('"effort":"medium"', '"effort":"high"') if '"asked"' in line else line for line in lines]
    tape.write_text("".join(changed))

    said = typed(tmp_path, "replay", str(tape))

    assert said.code == 1
    assert (
        "Differs: Step 1: the request differs from the recorded one in `effort`: recorded high, now medium." in said.out
    )


def test_what_cannot_be_asked_for_real_is_told_and_is_the_exit_code(tape: Path, tmp_path: Path) -> None:
    said = typed(tmp_path, "replay", str(tape), "--model", "openai/gpt-5.2")

    assert said.code == 1
    assert "Now: OpenAI needs a key" in said.out


def test_a_surface_answers_from_a_recording(tape: Path, tmp_path: Path) -> None:
    home = tmp_path / "then"
    before = program("sessions", "list", "--json", home=home).out

    again = program("--replay", str(tape), "-z", "Which files are here?", home=home)
    other = program("--replay", str(tape), "-z", "Something else?", home=home)

    assert (again.code, again.err) == (0, "")
    assert (other.code, "message 1 at character 1" in other.err) == (1, True)
    assert program("sessions", "list", "--json", home=home).out == before
