"""What was found against a command, and the place that it is judged for."""

from __future__ import annotations

import os.path
import re
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.tools.syntax.simple import COMPUTED, NAME, PIPE, VARIABLE

HARMLESS_DEVICES = frozenset(
    ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/zero", "/dev/full")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What reading a command found: the reason it is never run, or the reasons to ask; both empty where it is fine."""

    blocked: str = ""
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where a command runs: its working directory, and the folders in which it may write without asking."""

    folder: str
    writable: tuple[str, ...]

    def is_outside(self, path: str) -> bool:
        """Whether a path that a command writes to is outside the writable folders. A path that begins with an unknown
        value counts as outside: nobody knows where it leads."""
        if path in HARMLESS_DEVICES or path.startswith(("/dev/fd/", "&")) or path.isdecimal() or path in ("-", ""):
            return False
        if PIPE in path:
            return False
        if path[:1] in ("$", "~", VARIABLE) or COMPUTED in path or self.folder[:1] in ("~", VARIABLE):
            return True
        real = os.path.realpath(Path(self.folder) / re.sub(f"[{VARIABLE}{NAME}]", "x", path))
        return not any(real == top or real.startswith(f"{top}/") for top in map(os.path.realpath, self.writable))
