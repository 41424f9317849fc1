"""The version, before anything else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hermes_agent.version import VERSION
from tests.cli.shell import PROGRAM, ROOT, program

HEAVY = {"click", "httpx2", "prompt_toolkit", "rich", "httptools", "yaml", "asyncio", "msgspec", "dataclasses"}


def loaded_by(*words: str) -> set[str]:
    """The modules that the program has loaded when it ends."""
    listing = f"{PROGRAM[: PROGRAM.rindex(';')]}; code = main(); print(*sys.modules, file=sys.stderr); sys.exit(code)"
    done = subprocess.run(
        [sys.executable, "-c", listing, *words],
        env={"PYTHONPATH": str(ROOT / "src"), "HERMES_HOME": "/nowhere"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return set(done.stderr.splitlines()[-1].split())


def test_the_version_is_told_without_loading_anything() -> None:
    assert loaded_by("--version") & HEAVY == set()


def test_help_loads_no_subcommand() -> None:
    loaded = loaded_by("--help")

    assert "click" in loaded
    assert loaded & {"httpx2", "prompt_toolkit", "rich", "httptools", "yaml", "asyncio"} == set()
    assert not any(name.startswith("hermes_agent.cli.commands.") for name in loaded)


def test_the_version_is_told(tmp_path: Path) -> None:
    for words in (["--version"], ["-V"], ["-q", "--version"]):
        assert program(*words, home=tmp_path / "none").out == f"hermes {VERSION}\n"
    assert not (tmp_path / "none").exists()
