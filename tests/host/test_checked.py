"""How a problem is written."""

from __future__ import annotations

from hermes_agent.host.checked import Problem


def test_a_problem_is_written_so_that_an_editor_finds_the_line() -> None:
    assert str(Problem(file="config.yaml", line=3, text="wrong.")) == "config.yaml:3: wrong."
    assert str(Problem(file="config.yaml", line=0, text="wrong.")) == "config.yaml: wrong."
