"""Both sides of a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sandbox.sync.local_shell import Sides


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return Sides(tmp_path)


@pytest.fixture
async def alike(sides: Sides) -> Sides:
    """Both have the same three files, and that is known."""
    for name, text in {"a.txt": "a", "src/b.py": "b", "src/c d.py": "c"}.items():
        (sides.here / name).parent.mkdir(exist_ok=True)
        (sides.here / name).write_text(text)
    assert await sides.command() == ((), None)
    sides.shell.scripts.clear()
    return sides
