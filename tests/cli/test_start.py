"""From a command line to what answers it."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.cli.start import unwritten
from tests.cli.shell import PROGRAM, ROOT, program
from tests.measured import measured

FULL = Path("/dev/full")


def test_a_mistake_is_one_sentence_and_the_code_of_usage(tmp_path: Path) -> None:
    said = program("cofnig", home=tmp_path)

    assert said.code == 2
    assert "There is no command `cofnig`. Did you mean `hermes config`?" in said.err
    assert said.out == ""


def test_an_error_of_ours_is_one_sentence_without_a_traceback(tmp_path: Path) -> None:
    said = program("-p", "../x", "config", "path", home=tmp_path)

    assert said.code == 4
    assert said.err == "`../x` is not a profile name: at most 64 of a-z, 0-9, `-` and `_`, a letter or digit first.\n"


def test_nothing_asked_is_told(tmp_path: Path) -> None:
    said = program("-z", "  ", home=tmp_path)

    assert said.code == 2
    assert said.err.startswith("There is no prompt. Use `hermes -z PROMPT`")


def test_a_reader_that_leaves_early_is_no_traceback(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "config", "show"],
        env={"PYTHONPATH": str(ROOT / "src"), "HERMES_HOME": str(tmp_path), **measured()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()

    assert (process.wait(), said) == (1, "")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
def test_output_that_finds_no_room_is_one_sentence(tmp_path: Path) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "config", "path"],
            env={"PYTHONPATH": str(ROOT / "src"), "HERMES_HOME": str(tmp_path), **measured()},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=25,
            check=False,
        )

    assert (done.returncode, done.stderr) == (1, "The output could not be written: No space left on device.\n")


def test_another_failure_of_the_system_is_a_sentence_and_a_defect_keeps_its_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for error in (PermissionError(errno.EACCES, "Permission denied"), OSError(errno.ENOSPC, "No space", "a.txt")):
        assert unwritten(error) == 1
        assert f"{error.strerror}. What to do: " in capsys.readouterr().err
    with pytest.raises(OSError, match="odd"):
        unwritten(OSError("odd"))


def test_a_terminal_that_knows_no_unicode_gets_escapes(tmp_path: Path) -> None:
    home = tmp_path / "höme"

    said = program("config", "path", home=home, variables={"PYTHONIOENCODING": "ascii"})

    assert said.out == f"{tmp_path}/h\\xf6me/config.yaml\n"


def test_what_is_piped_in_joins_the_question(tmp_path: Path) -> None:
    said = program("-m", "demo/scripted", "-z", "About this:", "--json", home=tmp_path, stdin=b"piped words\n")

    assert said.code == 0, said.err
    assert '"text":"About this:\\n\\n"' in said.out
    assert '"text":"piped words"' in said.out


def test_without_a_model_a_question_is_one_sentence_and_its_code(tmp_path: Path) -> None:
    said = program("-z", "hello", home=tmp_path)

    assert said.code == 3
    assert "`hermes setup`" in said.err
    assert "`hermes demo`" in said.err
    assert "Traceback" not in said.err
