"""Verdict on a shell command, and the circumstances in which it is judged."""

from __future__ import annotations

import os.path
import re
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.host.paths import followed

# What stands in a word for something that reading cannot know; characters of no script (Unicode's private use).
VARIABLE = "\ue000"  # the value of a variable that was not set here
COMPUTED = "\ue001"  # what another program prints
NAME = "\ue002"  # a name below the folder, a number, a date
PIPE = "\ue003"  # the path of a process substitution
UNKNOWN = VARIABLE + COMPUTED + NAME
DEVICES = re.compile(rf"/dev/(null|stdout|stderr|stdin|tty|zero|full|fd/.*)|&.*|\d*|-|.*{PIPE}.*")
"""What may be written to everywhere: it is no file, or a process substitution."""


def named(text: str) -> frozenset[str]:
    return frozenset(text.split())


REMADE = named(
    "node_modules __pycache__ .venv venv target dist build out .next .gradle .mypy_cache .ruff_cache .pytest_cache .tox"
    " .nox .cache coverage htmlcov .coverage .eggs .parcel-cache .turbo"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why a command is blocked, or why a person is asked. `leaves`: it is of no use inside a wall."""

    blocked: str = ""
    asks: tuple[str, ...] = ()
    leaves: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where a command runs: its folder, the folders that it may write to, and a `closed` one in them. `walled`: behind
    a wall; `bare`: there is none, against the settings. `largest`: bytes of a file in a checkpoint; 0: none is."""

    folder: str
    writable: tuple[str, ...]
    closed: str = ""
    walled: bool = False
    bare: bool = False
    largest: int = 10 << 20

    def is_outside(self, path: str) -> bool:
        """Whether a written path is outside the writable folders. One that begins with an unknown value is."""
        if DEVICES.fullmatch(path):
            return False
        if path[:1] in ("$", "~", VARIABLE) or COMPUTED in path or self.folder[:1] in ("~", VARIABLE):
            return True
        try:
            real = followed(Path(self.folder) / re.sub(f"[{VARIABLE}{NAME}]", "x", path))
        except ToolError:  # nobody knows where it leads
            return True
        return is_below(real, self.closed) or not any(is_below(real, os.path.realpath(top)) for top in self.writable)

    def is_lost(self, path: str) -> bool:
        """Whether deleting or overwriting this path would lose what no checkpoint of the workspace holds."""
        if re.fullmatch(r"(?!/).*[*?\[].*", path):
            return any(self.is_lost(str(each)) for each in Path(self.folder).glob(path))
        here = Path(self.folder) / path
        if self.is_outside(path) or not os.path.lexists(here) or REMADE & set(here.parts):
            return False
        if not self.largest or ".git" in here.parts or (here / ".git").exists() or here.name.startswith(".env"):
            return True
        return here.is_file() and here.stat().st_size > self.largest


def is_below(real: str, top: str) -> bool:
    return bool(top) and (real == top or real.startswith(f"{top.rstrip('/')}/"))
