"""`hermes completion`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import program, typed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(tmp_path: Path, shell: str) -> None:
    assert "_HERMES_COMPLETE" in typed(tmp_path, "completion", shell).out


def test_the_script_s_question_is_answered_with_names(tmp_path: Path) -> None:
    variables = {"_HERMES_COMPLETE": "bash_complete", "COMP_WORDS": "hermes conf", "COMP_CWORD": "1"}

    assert program(home=tmp_path, variables=variables).out == "plain,config\n"
