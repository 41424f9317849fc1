"""`hermes demo` as a person runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

LAUNCH = "import sys; from hermes_agent.cli.main import main; sys.exit(main())"
pytestmark = pytest.mark.timeout(240)
SLOWED = 4 if "PYTEST_XDIST_WORKER" in os.environ else 1
"""Beside other tests everything takes longer; the limits are those of a demo alone."""
FOLDER = re.compile(r"Folder: (\S+)")


def demo(folder: Path, *options: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run it with its temporary folder below `folder`, its output in a pipe."""
    source = str(Path(__file__).parents[3] / "src")
    variables = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": source, "PATH": path or os.environ["PATH"]}
    argv = [sys.executable, "-P", "-c", LAUNCH, "demo", *options]
    return subprocess.run(argv, env=variables, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_demo_repairs_is_killed_resumes_and_checks_itself(tmp_path: Path):
    began = time.monotonic()
    done = demo(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - began < 20 * SLOWED
    assert "scripted" in done.stdout.splitlines()[0]
    assert "KILLED with SIGKILL" in done.stdout
    assert "hermes --resume" in done.stdout
    assert "  NO " not in done.stdout
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", done.stdout + done.stderr)
    assert list(tmp_path.glob("hermes-demo-*")) == []


@pytest.mark.slow
def test_the_folder_is_left_where_that_is_wanted(tmp_path: Path):
    done = demo(tmp_path, "--keep")
    folder = Path(FOLDER.findall(done.stdout)[0])

    assert (folder / "project/stocktake.log").read_text() == "stocktake begun\nstocktake finished\n"
    assert (folder / "home/hermes.db").is_file()
    assert str(folder) in done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_a_check_that_fails_is_an_exit_code_and_leaves_the_folder(tmp_path: Path):
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "python3").write_text("#!/bin/sh\necho this python is broken >&2\nexit 1\n")
    (broken / "python3").chmod(0o755)
    done = demo(tmp_path, path=f"{broken}:{os.environ['PATH']}")

    assert done.returncode == 1
    assert "  NO   the project's tests pass now (no test ran)" in done.stdout
    assert list(tmp_path.glob("hermes-demo-*"))


@pytest.mark.slow
def test_the_demo_of_learning_does_a_task_in_a_third_of_the_calls_and_takes_the_lesson_back(tmp_path: Path):
    began = time.monotonic()
    done = demo(tmp_path, "--learning")

    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - began < 60 * SLOWED
    assert re.search(r"tool calls\s+12\s+4\s+67 %\s+7", done.stdout)
    assert "  NO " not in done.stdout


@pytest.mark.slow
def test_the_demo_of_work_kills_a_goal_with_two_agents_and_ends_with_a_card_and_a_job(tmp_path: Path):
    began = time.monotonic()
    done = demo(tmp_path, "--work")

    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - began < 60 * SLOWED
    assert "KILLED" in done.stdout
    assert "  NO " not in done.stdout
