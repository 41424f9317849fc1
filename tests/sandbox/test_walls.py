"""What the walls say of a path: the longest name decides, closed covers, and a workspace is open but for the home."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hermes_agent.sandbox.jail import CannotJail, check_workspace, jail_of
from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.walls import Walls, _mounted


@pytest.fixture
def walls(tmp_path: Path) -> Walls:
    for name in ("person/.ssh", "person/.pyenv/bin", "home/workspace", "work/.ssh", "data/sub", "shown"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("person")
    return Walls(
        readable=("/usr", "/etc", f"{tmp_path}/shown", f"{tmp_path}/person/.pyenv", f"{tmp_path}/data/sub"),
        writable=(f"{tmp_path}/data",),
        closed=("/etc/shadow", f"{tmp_path}/home", f"{tmp_path}/person/.ssh", f"{tmp_path}/work/.ssh"),
        workspaces=f"{tmp_path}/home/workspace",
    )


@pytest.mark.parametrize(
    ("path", "access"),
    [
        ("/usr/bin/env", "read"),
        ("/usr", "read"),
        ("/usrs", "none"),
        ("/", "none"),
        ("/etc/passwd", "read"),
        ("/etc/shadow", "none"),
        ("{}/work", "write"),
        ("{}/work/new/deep", "write"),
        ("{}/work2", "none"),
        ("{}/work/.ssh/id", "none"),
        ("{}/data/x", "write"),
        ("{}/data/sub/x", "read"),
        ("{}/person/notes", "none"),
        ("{}/person/.pyenv/bin/python", "read"),
        ("{}/home/.env", "none"),
        ("{}/home/workspace/x", "none"),
    ],
)
def test_a_path_has_the_access_of_the_longest_name_that_holds_it(
    walls: Walls, tmp_path: Path, path: str, access: str
) -> None:
    assert walls.access(path.format(tmp_path), f"{tmp_path}/work") == access


def test_a_workspace_that_holds_the_home_covers_it(walls: Walls, tmp_path: Path) -> None:
    for path, access in (
        ("person/x", "write"),
        ("person/.ssh/id", "none"),
        ("home/.env", "none"),
        ("data/sub", "read"),
    ):
        assert walls.access(f"{tmp_path}/{path}", str(tmp_path)) == access


def test_a_workspace_in_a_closed_folder_is_open_only_where_workspaces_are(walls: Walls, tmp_path: Path) -> None:
    for name, open_ in (("home/workspace", True), ("home/workspace/a", True), ("home", False), ("home/skills", False)):
        workspace = f"{tmp_path}/{name}"
        assert walls.opens(workspace) is open_
        assert (walls.access(f"{workspace}/x", workspace) == "write") is open_
    assert walls.access(f"{tmp_path}/home/.env", f"{tmp_path}/home/workspace") == "none"


def test_a_workspace_that_is_a_link_is_what_it_leads_to(walls: Walls, tmp_path: Path) -> None:
    assert walls.access(f"{tmp_path}/person/x", f"{tmp_path}/link") == "write"
    assert walls.access(f"{tmp_path}/person/.ssh/x", f"{tmp_path}/link") == "none"


def test_what_is_writable_and_closed_is_closed(tmp_path: Path) -> None:
    named = str(tmp_path)

    assert Walls(writable=(named,), closed=(named,)).access(f"{named}/x", "/work") == "none"


def test_the_whole_machine_may_be_shown(walls: Walls, tmp_path: Path) -> None:
    whole = Walls(writable=("/",), readable=(), closed=(f"{tmp_path}/home",))

    assert whole.shown(f"{tmp_path}/work") == {"/": "write", f"{tmp_path}/work": "write", f"{tmp_path}/home": "none"}
    assert whole.access("/x", "/work") == "write"


def test_parents_are_shown_before_what_is_in_them(walls: Walls, tmp_path: Path) -> None:
    shown = list(walls.shown(f"{tmp_path}"))

    assert shown.index(str(tmp_path)) < shown.index(f"{tmp_path}/data") < shown.index(f"{tmp_path}/data/sub")


def test_ten_thousand_paths_are_looked_up_as_fast_as_ten(tmp_path: Path) -> None:
    walls = Walls(writable=tuple(f"{tmp_path}/{number}" for number in range(10_000)))
    walls.access("/usr", "/work")
    began = time.perf_counter()

    for number in range(1000):
        assert walls.access(f"{tmp_path}/{number}/a/b/c", "/work") == "write"

    assert time.perf_counter() - began < 1


MOUNTED = """\
21 1 8:1 / / rw - ext4 /dev/sda1 rw
22 21 8:1 /home/me/.hermes {0}/mnt rw - ext4 /dev/sda1 rw
23 21 8:1 /home/me {0}/a\\040b rw - ext4 /dev/sda1 rw
24 21 8:1 /home/me/.ssh/keys {0}/keys rw - ext4 /dev/sda1 rw
25 21 8:1 /home/me/.hermes/workspace/x {0}/open rw - ext4 /dev/sda1 rw
26 21 8:2 /home/me/.hermes {0}/other rw - ext4 /dev/sdb1 rw
27 21 8:1 /home/me {0}/covered rw - ext4 /dev/sda1 rw
28 27 0:9 / {0}/covered rw - tmpfs tmpfs rw
29 21 0:4 net:[1] /run/netns/x rw - nsfs nsfs rw
"""


def test_what_is_closed_is_closed_at_each_mount_of_it_too() -> None:
    closed = "/home/me/.hermes", "/home/me/.ssh"
    walls = Walls(closed=closed, workspaces="/home/me/.hermes/workspace")

    found = _mounted(walls, MOUNTED.format("/w").encode())

    assert sorted(found) == ["/w/a b/.hermes", "/w/a b/.ssh", "/w/keys", "/w/mnt"]


def test_folders_that_hold_the_system_are_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")

    for folder in ("/", "/usr/../etc", str(tmp_path / "link"), "/bin", "/lib", "/sbin", "/boot", "/home"):
        with pytest.raises(PlaceFailed, match="holds the system"):
            check_workspace(folder, Walls())
    check_workspace(str(tmp_path), Walls())


def test_where_nothing_works_no_command_runs_without_walls() -> None:
    with pytest.raises(CannotJail, match="cannot be jailed here"):
        jail_of("no-such-jail", Walls())
