"""`./check --full` runs the tests under each Python that pyproject.toml names."""

import re
import sys
from pathlib import Path

import check
import pytest
import pythons

STAND_IN = '#!/bin/sh\nexec {python} -I -c \'import sys; sys.exit(sys.argv[1] != "{version}")\' "$4"\n'


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH, and a version manager that has nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    return tmp_path


def stand_in(file: Path, version: str) -> str:
    """A program that says that it is this version."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(STAND_IN.format(python=sys.executable, version=version))
    file.chmod(0o755)
    return str(file)


def test_the_versions_are_those_of_the_project_without_this_one():
    project = (pythons.ROOT / "pyproject.toml").read_text()
    lowest, end = re.findall(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', project)[0]
    supported = {f"3.{minor}" for minor in range(int(lowest), int(end))}
    assert {*pythons.others(), "{}.{}".format(*sys.version_info)} == supported
    assert len(pythons.others()) == len(supported) - 1


def test_a_version_is_found_on_the_path_and_with_a_version_manager_but_not_by_its_name_alone(machine: Path):
    stand_in(machine / "python3.12", "3.9")
    kept = stand_in(machine / "versions/3.12.1/bin/python", "3.12")
    stand_in(machine / "versions/3.13.0/bin/python", "3.13")

    assert [each for each in pythons.candidates("3.12") if pythons.suits(each, "3.12")] == [kept]
    stand_in(machine / "python3.12", "3.12")
    assert [each for each in pythons.candidates("3.12") if pythons.suits(each, "3.12")] == ["python3.12", kept]


def test_a_version_that_is_not_here_is_skipped_by_its_name(machine: Path, capsys: pytest.CaptureFixture[str]):
    gates, skipped = check.tests_elsewhere()

    assert gates == []
    check.report([], skipped)
    printed = capsys.readouterr().out
    for version in pythons.others():
        assert f"skipped: the tests under Python {version}: no python{version} on the PATH" in printed


def test_the_suite_of_another_python_is_not_measured_and_named_by_it():
    gate = check.suite("Python 3.13", ["/env/bin/python", "-I"])

    assert gate.command[:4] == ["/env/bin/python", "-I", "-m", "pytest"]
    assert "coverage" not in gate.command
    assert gate.mend.startswith("/env/bin/python -m pytest ")
