"""`./check --mutants` names the changes of the source that no test notices."""

import subprocess
from pathlib import Path

import mutants
import pytest

SOURCE = """def larger(one, other):
    if one > other:
        return one
    return other + 0


def unreached():
    return 1
"""
TEST = """from hermes_agent.small.compare import larger


def test_larger():
    assert larger(2, 1) == 2
    assert larger(1, 2) == 2
"""
PLAN = '[small]\ntests = ["tests"]\nnoticed = 100\n'


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_changes_that_no_test_notices_are_named_and_count(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    files = {
        "src/hermes_agent/__init__.py": "",
        "src/hermes_agent/small/__init__.py": "",
        "src/hermes_agent/small/compare.py": SOURCE,
        "tests/test_compare.py": TEST,
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n',
        ".ci/mutants.toml": PLAN,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    assert mutants.main(["--seed", "7", "--most", "20"], tmp_path) == 1

    said = capfd.readouterr().out
    assert "seed 7" in said
    assert "x_unreached__mutmut_1: no test reaches it" in said
    assert "+    if one >= other:" in said
    assert "small: 25 % of 4 changes noticed, of 4 possible" in said
    assert "Fewer changes are noticed than .ci/mutants.toml asks for: small." in said
