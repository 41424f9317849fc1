"""The project that the demo repairs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hermes_agent.providers.demo.project import unpack_project


def test_the_project_unpacks_with_exactly_one_failing_test(tmp_path: Path):
    unpack_project(tmp_path / "new" / "folder")
    tests = subprocess.run(
        ["python3", "-m", "unittest"], cwd=tmp_path / "new/folder", capture_output=True, text=True, check=False
    )

    assert tests.stderr.rstrip().endswith("FAILED (failures=1)")
    assert (tmp_path / "new/folder/README.md").is_file()
    assert not list(tmp_path.rglob("*.txt"))
