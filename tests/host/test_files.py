"""Small private files: whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.core.errors import HomeError
from hermes_agent.host.files import read_small, write_private

FULL = """
import resource, signal, sys
from pathlib import Path
from hermes_agent.core.errors import HomeError
from hermes_agent.host.files import write_private
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_private(Path(sys.argv[1]), b"x" * 5000)
except HomeError as error:
    print(error)
"""


def test_no_file_is_none(tmp_path: Path) -> None:
    assert read_small(tmp_path / "none") is None


def test_a_file_is_replaced_as_a_whole_and_private(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "f").chmod(0o644)

    write_private(tmp_path / "f", b"new")

    assert read_small(tmp_path / "f") == b"new"
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_where_there_is_no_room_the_old_content_stands(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    source = Path(__file__).parents[2] / "src"

    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "f")],
        env={"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert "cannot be written (File too large)" in done.stdout
    assert (tmp_path / "f").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="cannot be written"):
        write_private(tmp_path / "gone" / "f", b"")
