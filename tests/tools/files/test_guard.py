"""Which paths are refused, and that what is opened is what was looked at."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.core.errors import Refused, ToolError
from hermes_agent.sandbox.walls import CREDENTIAL_FILES, CREDENTIAL_FOLDERS, SYSTEM_CREDENTIALS, Walls
from hermes_agent.tools.files.guard import Guard, cannot, open_regular
from hermes_agent.tools.files.writing import ABSENT, Writer


@pytest.fixture
def guard(tmp_path: Path, home: Path) -> Guard:
    closed = (home, *(tmp_path / name for name in (*CREDENTIAL_FOLDERS, *CREDENTIAL_FILES)), *SYSTEM_CREDENTIALS)
    walls = Walls(closed=tuple(map(str, closed)), workspaces=str(home / "workspace"))
    return Guard(home=home, person=tmp_path, walls=lambda: walls)


@pytest.mark.parametrize(
    "path",
    [
        ".ssh/id_ed25519",
        ".ssh/config",
        ".aws/credentials",
        ".netrc",
        "work/server.pem",
        "work/deploy.KEY",
        "work/id_rsa",
        "/etc/shadow",
    ],
)
def test_credentials_are_neither_read_nor_written(guard: Guard, tmp_path: Path, path: str) -> None:
    for writes in (False, True):
        with pytest.raises(Refused, match="credentials"):
            guard.locate(path, str(tmp_path), writes=writes)


@pytest.mark.parametrize("path", ["work/id_ed25519.pub", "work/.env", "work/keys.py"])
def test_what_only_sounds_like_a_credential_is_free(guard: Guard, tmp_path: Path, path: str) -> None:
    assert guard.locate(path, str(tmp_path)) == tmp_path.resolve() / path


def test_a_link_into_the_home_is_the_home(guard: Guard, workspace: Path, home: Path) -> None:
    (home / ".env").write_text("KEY=1")
    (workspace / "notes.txt").symlink_to(home / ".env")

    with pytest.raises(Refused, match="home of Hermes"):
        guard.locate("notes.txt", str(workspace))


def test_the_home_sign_means_the_persons_home(guard: Guard, workspace: Path, tmp_path: Path) -> None:
    assert guard.locate("~/work/a.txt", str(workspace)) == workspace.resolve() / "a.txt"
    with pytest.raises(Refused):
        guard.locate("~/.ssh/known_hosts", str(workspace))


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/sda", "/proc/self/mem", "/proc/1/environ", "/sys/kernel/notes"])
def test_devices_and_views_of_the_kernel_are_refused(guard: Guard, path: str) -> None:
    with pytest.raises(Refused, match="device or a view of the kernel"):
        guard.locate(path, "/")


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_is_no_path_is_refused(guard: Guard, path: str) -> None:
    with pytest.raises(ToolError, match="NUL"):
        guard.locate(path, "/")


def test_a_path_too_long_is_refused(guard: Guard) -> None:
    with pytest.raises(Refused, match="too long"):
        guard.locate("a/" * 3000, "/")


@pytest.mark.parametrize(
    ("path", "writes", "asks"),
    [
        ("work/a.txt", True, False),
        ("other/a.txt", False, True),
        ("other/a.txt", True, True),
        ("shown/a.txt", False, False),
        ("shown/a.txt", True, True),
        ("home/cache/results/1.txt", False, False),
        ("home/.env", False, False),
        ("home/workspace/a.txt", False, True),
    ],
)
def test_what_commands_are_not_shown_is_asked_about_unless_it_is_refused(
    guard: Guard, tmp_path: Path, path: str, writes: bool, asks: bool
) -> None:
    (tmp_path / "home/workspace").mkdir()
    walls = replace(guard.walls(), readable=(f"{tmp_path}/shown",))
    guard = replace(guard, walls=lambda: walls)

    assert guard.asks(f"{tmp_path}/{path}", f"{tmp_path}/work", writes=writes) is asks


@pytest.mark.parametrize("workspace", ["/", "/usr", "/var"])
def test_a_workspace_that_holds_the_system_is_asked_about_at_every_write(guard: Guard, workspace: str) -> None:
    assert guard.asks(f"{workspace.rstrip('/')}/a.txt", workspace, writes=True)


def test_a_person_as_the_workspace_leaves_their_credentials_and_the_home_closed(guard: Guard, tmp_path: Path) -> None:
    assert not guard.asks(f"{tmp_path}/a.txt", str(tmp_path), writes=True)
    for path in (
        ".ssh/config",
        ".aws/new",
        ".bash_history",
        ".config/git/credentials",
        "home/skills/a/SKILL.md",
        "home",
    ):
        with pytest.raises(Refused):
            guard.locate(path, str(tmp_path), writes=True)


@pytest.mark.parametrize(
    ("path", "anothers"),
    [
        ("home/cache/input/0123456789abcdef/x.txt", True),
        ("home/cache/input/x.txt", True),
        ("home/cache/results/mine/x.txt", False),
        ("home/cache/jailed/session/1/out", False),
        ("home/cache/jailed/other/session/out", True),
        ("home/cache", True),
        ("home/workspace/cache/x", False),
        ("home/skills/a/SKILL.md", False),
        ("work/cache/input/x.txt", False),
    ],
)
def test_what_is_in_the_cache_is_another_s_but_in_folders_of_one_s_own(
    guard: Guard, tmp_path: Path, path: str, anothers: bool
) -> None:
    (tmp_path / "home/workspace").mkdir(exist_ok=True)
    (tmp_path / "home/cache").mkdir(exist_ok=True)

    assert guard.is_anothers(f"{tmp_path}/{path}", "mine", "session", "") is anothers


def test_ten_thousand_paths_are_asked_about_in_no_time(guard: Guard, workspace: Path) -> None:
    walls = replace(guard.walls(), writable=tuple(f"/data/{number}" for number in range(10_000)))
    guard = replace(guard, walls=lambda: walls)
    began = time.perf_counter()

    assert not any(guard.asks(f"/data/{number}/a", str(workspace), writes=True) for number in range(0, 10_000, 100))

    assert time.perf_counter() - began < 2


def test_a_folder_that_became_a_link_since_it_was_looked_at_is_not_followed(guard: Guard, workspace: Path) -> None:
    for name in ("mine", "other"):
        (workspace / name / "sub").mkdir(parents=True)
        (workspace / name / "sub/a.txt").write_text(name)
    real = guard.locate("mine/sub/a.txt", str(workspace))
    (workspace / "mine").rename(workspace / "before")
    (workspace / "mine").symlink_to("other")

    with pytest.raises(Refused, match="leads elsewhere since"):
        open_regular(real, "mine/sub/a.txt")
    with pytest.raises(Refused, match="leads elsewhere since"):
        Writer().swap(real.with_name("new.txt"), "mine/new.txt", b"x", over=ABSENT)
    assert not (workspace / "other/sub/new.txt").exists()


def test_a_pipe_is_refused_at_once_instead_of_waited_for(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")

    with pytest.raises(Refused, match="a pipe"):
        open_regular(workspace / "pipe", "pipe")


def test_a_socket_and_a_folder_are_no_files(workspace: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, pytest.MonkeyPatch.context() as patch:
        patch.chdir(workspace)
        made.bind("s")

        with pytest.raises(Refused, match="socket"):
            open_regular(workspace / "s", "s")
    with pytest.raises(ToolError, match="folder"):
        open_regular(workspace, "work")


def test_a_link_put_there_meanwhile_is_not_followed(workspace: Path) -> None:
    (workspace / "a").symlink_to("/etc/hosts")

    with pytest.raises(ToolError, match="loop of links"):
        open_regular(workspace / "a", "a")


def test_each_failure_of_the_system_is_a_sentence() -> None:
    assert "disk is full" in str(cannot("a", "write", OSError(28, "No space left on device")))
    assert "permission denied" in str(cannot("a", "read", PermissionError(13, "Permission denied")))
    assert str(cannot("a", "read", OSError(5, "Input/output error"))) == "a cannot be read: Input/output error."


def test_the_programs_own_source_is_read_and_never_written(home: Path, workspace: Path, tmp_path: Path) -> None:
    source = workspace / "hermes"
    source.mkdir()
    (source / "loop.py").write_text("")
    (workspace / "link").symlink_to(source)
    guard = Guard(home=home, person=tmp_path, source=source)

    assert guard.locate("hermes/loop.py", str(workspace)) == source / "loop.py"
    assert guard.locate("hermes2", str(workspace), writes=True) == workspace / "hermes2"
    for path in ("hermes/loop.py", "link/loop.py", "../work/hermes/new.py"):
        with pytest.raises(Refused, match=r"own source; `hermes config set approvals.own_source true` lets"):
            guard.locate(path.replace("../work", f"../{workspace.name}"), str(workspace), writes=True)
