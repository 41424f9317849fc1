import sys

import check
import pytest


def gate(title: str, script: str, *, aloud: bool = False) -> check.Gate:
    return check.Gate(title=title, command=[sys.executable, "-I", "-c", script], mend=f"mend {title}", aloud=aloud)


def test_a_gate_that_passes_says_only_its_time(capsys: pytest.CaptureFixture[str]):
    assert check.run(gate("lint", "print('noise')")).code == 0
    printed = capsys.readouterr().out
    assert "lint" in printed
    assert "ok" in printed
    assert "noise" not in printed


def test_a_gate_that_fails_shows_what_it_found(capsys: pytest.CaptureFixture[str]):
    assert check.run(gate("lint", "print('line 3 is wrong'); exit(1)")).code == 1
    assert "line 3 is wrong" in capsys.readouterr().out


def test_a_failed_gate_is_one_line_with_its_remedy_and_pytest_has_the_last_word(capsys: pytest.CaptureFixture[str]):
    outcomes = [check.run(gate("types", "exit(2)")), check.run(gate("tests", "print('== 3 passed ==')", aloud=True))]
    capsys.readouterr()
    assert check.report(outcomes) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "FAILED types: mend types" in lines
    assert "1 of 2 gates passed" in lines[-2]
    assert lines[-1] == "== 3 passed =="


def test_when_all_is_well_the_exit_code_says_so(capsys: pytest.CaptureFixture[str]):
    assert check.report([check.run(gate("tests", "print('== 3 passed ==')"))]) == 0
    assert "FAILED" not in capsys.readouterr().out


def test_coverage_is_judged_only_where_every_test_runs():
    assert [one.title for one in check.tests(fast=False, covered=True)] == ["tests", "coverage"]
    assert [one.title for one in check.tests(fast=True, covered=False)] == ["tests"]
    assert "not slow" in check.tests(fast=True, covered=False)[0].command
