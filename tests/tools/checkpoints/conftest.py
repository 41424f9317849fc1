"""A small folder, and the checkpoints of a home."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.testing.clock import FakeClock
from hermes_agent.tools.checkpoints.checkpoints import Checkpoints
from hermes_agent.tools.settings import CheckpointSettings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    (folder / "src/b.py").write_text("x = 1\n")
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "home/checkpoints", CheckpointSettings(), FakeClock())
