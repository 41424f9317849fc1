"""The manual's generated pages are what the program says of itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.architecture.source import ROOT


def test_the_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "manual.py"), "--check"],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_setting_says_what_it_is_for() -> None:
    text = (Path(ROOT) / "docs" / "configuration.md").read_text()

    assert [line for line in text.splitlines() if line.startswith("|") and line.endswith("|  |")] == []
