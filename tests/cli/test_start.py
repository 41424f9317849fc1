"""From a command line to what answers it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.shell import PROGRAM, ROOT, program


def test_a_mistake_is_one_sentence_and_the_code_of_usage(tmp_path: Path) -> None:
    said = program("cofnig", home=tmp_path)

    assert said.code == 2
    assert "There is no command `cofnig`. Did you mean `hermes config`?" in said.err
    assert said.out == ""


def test_an_error_of_ours_is_one_sentence_without_a_traceback(tmp_path: Path) -> None:
    said = program("-p", "../x", "config", "path", home=tmp_path)

    assert said.code == 4
    assert said.err == "`../x` is no profile name: at most 64 of a-z, 0-9, `-` and `_`, a letter or digit first.\n"


def test_nothing_asked_is_told(tmp_path: Path) -> None:
    said = program("-z", "  ", home=tmp_path)

    assert said.code == 2
    assert said.err.startswith("Nothing was asked: `hermes -z PROMPT`")


def test_a_reader_that_leaves_early_is_no_traceback(tmp_path: Path) -> None:
    command = f"{sys.executable} -c '{PROGRAM}' --help | true"

    done = subprocess.run(
        ["sh", "-c", command], env={"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=False
    )

    assert done.stderr == ""


def test_a_terminal_that_knows_no_unicode_gets_escapes(tmp_path: Path) -> None:
    home = tmp_path / "höme"

    said = program("config", "path", home=home, variables={"PYTHONIOENCODING": "ascii"})

    assert said.out == f"{tmp_path}/h\\xf6me/config.yaml\n"
