"""Small private files: whole or not at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.core.errors import HomeError, ToolError
from hermes_agent.host.paths import followed, read_small, sentence, write_private
from hermes_agent.tools.danger.verdict import Where

FULL = """
import resource, signal, sys
from pathlib import Path
from hermes_agent.core.errors import HomeError
from hermes_agent.host.paths import write_private
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


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_each_error_of_the_system_is_told_by_its_own_name(number: int) -> None:
    said = sentence(OSError(number, os.strerror(number), "/h/x"))

    assert said.startswith(f"/h/x: {os.strerror(number)}. What to do: ")
    assert ("free some room" in said) == (number in (errno.ENOSPC, errno.EDQUOT))
    assert ("chown" in said) == (number in (errno.EACCES, errno.EPERM))
    assert ("too many files" in said) == (number in (errno.EMFILE, errno.ENFILE))
    assert ("the disk, or the connection to it, fails" in said) == (number == errno.EIO)
    assert said.endswith(".")


def test_an_error_of_no_file_is_told_too() -> None:
    assert sentence(OSError(errno.ENOMEM, "Cannot allocate memory")).startswith("Cannot allocate memory. What to do: ")
    assert "None" not in sentence(OSError("odd"))


def test_a_link_that_may_not_be_read_is_told_and_what_is_written_there_is_outside() -> None:
    ended = subprocess.Popen(["true"])  # until somebody waits for it, what it had open cannot be asked for
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    path = f"/proc/{ended.pid}/root/x"

    with pytest.raises(ToolError, match=f"{path} cannot be followed: No such file or directory"):
        followed(path)
    assert Where(folder="/w", writable=("/",)).is_outside(path)
    ended.wait()
