"""Where a home is, and what happens where it cannot be one."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.core.errors import HomeError
from hermes_agent.host.paths import current_folder, find_home, locks_of_all_homes, way_out

NOBODY = 65534
ROOT = Path(__file__).parents[2]
USE = """
import os, sys
from hermes_agent.core.errors import HomeError
from hermes_agent.host.config import load
from hermes_agent.host.paths import way_out
from hermes_agent.host.paths import current_folder, find_home, locks_of_all_homes
from tests.host.settings_for_tests import Settings
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    home = find_home("", {"HERMES_HOME": sys.argv[1]}).ensure()
except HomeError as error:
    print("home:", error)
else:
    print("config:", load(home, Settings, {}).notice)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="hermes-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def used_by_nobody(home: Path) -> str:
    """What a user without rights is told: root may read everything, so the tests of rights run as somebody else."""
    command = [sys.executable, "-c", USE, str(home)]
    variables = {"PYTHONPATH": f"{ROOT}/src:{ROOT}"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.strip()


def test_the_home_is_hermes_home_or_a_folder_of_the_person() -> None:
    assert find_home("", {"HERMES_HOME": "/srv/h"}).root == Path("/srv/h")
    assert find_home("", {"HERMES_HOME": ""}).root == Path.home() / ".hermes"
    with pytest.raises(HomeError, match="`some/where`, another folder wherever you are"):
        find_home("", {"HERMES_HOME": "some/where"})


def test_the_locks_of_all_homes_are_the_person_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert locks_of_all_homes().is_relative_to(tmp_path)

    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    with pytest.raises(HomeError, match="nowhere is not there"):
        locks_of_all_homes()


def test_a_profile_has_its_own_home_and_shares_the_base() -> None:
    home = find_home("work", {"HERMES_HOME": "/srv/h"})

    assert home.root == Path("/srv/h/profiles/work")
    assert home.base == Path("/srv/h")
    assert home.database == Path("/srv/h/profiles/work/hermes.db")


@pytest.mark.parametrize("name", ["../x", "A", "-a", "a/b", "ä", "a" * 65, "a\n", "."])
def test_a_profile_name_cannot_leave_the_home(name: str) -> None:
    with pytest.raises(HomeError, match="not a profile name"):
        find_home(name, {"HERMES_HOME": "/srv/h"})


def test_a_new_home_is_its_owners_alone(tmp_path: Path) -> None:
    home = find_home("", {"HERMES_HOME": str(tmp_path / "a" / "b")}).ensure()

    modes = {folder.stat().st_mode & 0o777 for folder in (home.root, home.cache, home.logs, home.locks)}
    assert modes == {0o700}


def test_a_file_in_place_of_the_home_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")

    with pytest.raises(HomeError, match="a file stands where a folder must be"):
        find_home("", {"HERMES_HOME": str(tmp_path / "home")}).ensure()


def test_a_home_that_cannot_be_made_names_the_way_out() -> None:
    with pytest.raises(HomeError, match="set HERMES_HOME to a folder"):
        find_home("", {"HERMES_HOME": "/proc/hermes"}).ensure()


def test_where_nothing_can_be_written_no_room_is_to_be_freed() -> None:
    assert way_out(OSError(errno.EROFS, "Read-only file system"), Path("/x")).startswith("mount it writable")
    assert way_out(OSError(errno.ENOSPC, "No space left on device"), Path("/x")).startswith("free some room")


def test_a_read_only_home_is_told_in_one_sentence(open_folder: Path) -> None:
    home = find_home("", {"HERMES_HOME": str(open_folder / "home")}).ensure()
    for folder in (home.cache, home.logs, home.locks, home.root):
        folder.chmod(0o555)

    said = used_by_nobody(home.root)

    assert said.startswith(f"home: The home {home.root} cannot be read and written by you: make it yours (`chown")
    assert said.endswith("or set HERMES_HOME to a folder of yours.")


def test_an_unreadable_home_is_told_in_one_sentence(open_folder: Path) -> None:
    home = find_home("", {"HERMES_HOME": str(open_folder / "home")}).ensure()
    home.root.chmod(0o000)

    assert used_by_nobody(home.root).startswith(
        f"home: The home {home.root} cannot be used (Permission denied): make it"
    )


def test_an_unreadable_config_file_is_a_problem_that_is_shown(open_folder: Path) -> None:
    home = find_home("", {"HERMES_HOME": str(open_folder / "home")}).ensure()
    home.config_file.write_text("jailed: true\n")
    if os.geteuid() == 0:
        for folder in (home.root, home.cache, home.logs, home.locks):
            os.chown(folder, NOBODY, NOBODY)
    home.config_file.chmod(0o000)

    said = used_by_nobody(home.root)

    assert said.startswith(f"config: {home.config_file}: {home.config_file} cannot be read (Permission denied)")


def test_a_folder_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    assert current_folder() == gone
    gone.rmdir()
    with pytest.raises(HomeError, match="cannot be used"):
        current_folder()
