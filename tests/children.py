"""The program as a child process, for the tests that kill it, or give it what it cannot use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.measured import path_of

HERMES = "import sys; sys.argv[0] = 'hermes'; from hermes_agent.cli.main import main; sys.exit(main())"
SOURCE = Path(__file__).parents[1] / "src"
PATIENCE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a child wrote, and its exit code."""

    code: int
    out: str
    err: str


def started(
    *arguments: str, home: Path, folder: Path, before: Sequence[str] = (), **variables: str
) -> subprocess.Popen[bytes]:
    """`hermes ARGUMENTS` at work in `folder` on this home; `before` are the words of a program that starts it."""
    environment = {
        **os.environ,
        "HERMES_HOME": str(home),
        "PYTHONPATH": path_of(SOURCE),
        "PYTHONDONTWRITEBYTECODE": "",
        **variables,
    }
    return subprocess.Popen(
        [*before, sys.executable, "-P", "-c", HERMES, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def said_by(child: subprocess.Popen[bytes]) -> Said:
    """Wait for its end."""
    out, err = child.communicate(timeout=PATIENCE)
    return Said(code=child.returncode, out=out.decode(), err=err.decode())


def unprivileged() -> list[str] | None:
    """The words that start a program for which file modes hold, also for root; None where that cannot be had."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    return [setpriv, "--bounding-set", "-all", "--inh-caps", "-all"] if setpriv else None
