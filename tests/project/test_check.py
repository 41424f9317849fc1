import sys
from pathlib import Path

import check
import pytest
import wall


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


STANDS_STILL = """
import asyncio
import pytest
import wall

wall.listen()


@pytest.fixture
async def task_that_does_not_end():
    yield
    await asyncio.Event().wait()


def test_one_that_ends():
    pass


async def test_one_whose_teardown_waits_without_end(task_that_does_not_end):
    pass
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("limit", [wall.Wall(quiet=5), wall.Wall(whole=10)])
def test_a_run_of_tests_that_stands_still_says_where_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, limit: wall.Wall
):
    (tmp_path / "test_still.py").write_text(STANDS_STILL)
    path = f"pythonpath={Path(check.__file__).parent}"
    options = ["-n2", *("-p", "xdist"), *("-p", "pytest_asyncio.plugin"), *("-p", "no:cacheprovider")]
    options += ["-o", "asyncio_mode=auto", "-o", path]
    command = [sys.executable, "-m", "pytest", f"--rootdir={tmp_path}", *options, str(tmp_path)]
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # A run that begins soon stands still soon.
    tests = check.Gate(title="tests", command=command, mend="look", aloud=True, alone=["true"], limit=limit)

    outcome = check.run(tests)

    assert outcome.code
    assert check.report([outcome]) == 1
    printed = capsys.readouterr().out
    assert "FAILED tests: it stood still" in printed
    assert "in task_that_does_not_end" in printed
    assert printed.count("--- process") == 2
    assert f"{limit.quiet if limit.quiet == 5 else limit.whole:g} s. Where its processes were" in printed
    assert "Test: test_still.py::test_one_whose_teardown_waits_without_end (teardown)" in printed


def test_what_a_gate_says_in_pieces_is_whole(capsys: pytest.CaptureFixture[str]):
    script = "import os\nfor byte in 'grün, 3 passed\\n'.encode():\n os.write(1, bytes([byte]))"

    outcome = check.run(gate("tests", script, aloud=True))

    assert outcome.output == ["grün, 3 passed\n"]
    assert "grün, 3 passed" in capsys.readouterr().out
