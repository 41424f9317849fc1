"""The unit under a real systemd: a user manager in a namespace of its own, where this machine lets one be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import ROOT

MANAGER = Path("/lib/systemd/systemd")
GROUPS = Path("/sys/fs/cgroup")
HIERARCHIES = [
    folder for folder in (GROUPS / "systemd", GROUPS / "unified", GROUPS) if (folder / "cgroup.procs").exists()
]
"""Where systemd keeps its groups: one of its own, the second one, or the one that there is."""
INSIDE = """
for each in "$@"; do echo $$ > "$each/cgroup.procs"; done
exec unshare --mount --pid --fork --kill-child --mount-proc "$PYTHON" -m tests.cli.gateway.under_systemd "$HOME"
"""


def hindrance() -> str:
    """Why no manager can be run here; empty where one can."""
    if not MANAGER.exists() or not shutil.which("unshare"):
        return "systemd is not installed"
    if os.geteuid() != 0:
        return "namespaces and groups of processes need root"
    if not HIERARCHIES or not all(os.access(folder, os.W_OK) for folder in HIERARCHIES):
        return "the groups of processes cannot be written"
    return ""


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(150),
    pytest.mark.skipif(bool(hindrance()), reason=f"systemd cannot be run here: {hindrance()}"),
]


@pytest.fixture(scope="module")
def groups() -> Iterator[list[Path]]:
    """Groups of processes for the manager, in each hierarchy, taken away with all that it makes in them."""
    made = [folder / f"hermes-test-{os.getpid()}" for folder in HIERARCHIES]
    for folder in made:
        folder.mkdir()
    yield made
    for folder in made:
        for below in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
            below.rmdir()
        folder.rmdir()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, groups: list[Path]) -> dict[str, str]:
    """What was seen in one journey."""
    folder = tmp_path_factory.mktemp("under-systemd")
    done = subprocess.run(
        ["sh", "-c", INSIDE, "sh", *map(str, groups)],
        env={
            "PATH": os.environ["PATH"],
            "PYTHON": sys.executable,
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": "/run/user/0",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=140,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_install_returns_when_the_gateway_has_said_that_it_is_ready(seen: dict[str, str]):
    assert seen["install"].startswith("0 ")
    assert "is installed, and the gateway is started" in seen["install"]
    assert seen["installed"] == "loaded running 0 The gateway listens."
    assert "The gateway runs as process" in seen["status"]


def test_one_that_was_killed_is_started_anew(seen: dict[str, str]):
    assert seen["killed"] == "loaded running 1 The gateway listens."


def test_one_that_gives_no_sign_of_life_is_killed_and_started_anew(seen: dict[str, str]):
    assert seen["ends"][:2] == ["signal", "watchdog"]
    assert seen["hung"] == "loaded running 2 The gateway listens."


def test_a_reload_ends_nothing(seen: dict[str, str]):
    assert seen["reloaded"] == seen["hung"]


def test_a_stop_lets_what_runs_finish(seen: dict[str, str]):
    assert seen["answer"] == "To the end."
    assert "dead" in seen["stopped"]
    assert seen["ends"][2:] == ["success", "success"]


def test_uninstall_ends_it_and_leaves_no_unit(seen: dict[str, str]):
    assert seen["uninstall"].startswith("0 ")
    assert seen["left"] == ["not-found dead 0", "[]"]
