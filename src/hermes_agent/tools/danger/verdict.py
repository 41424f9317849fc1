"""Verdict of danger analysis, and the context in which a command is judged."""

from __future__ import annotations

import os.path
import re
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.host.files import followed
from hermes_agent.tools.syntax.simple import COMPUTED, NAME, PIPE, VARIABLE

HARMLESS_DEVICES = frozenset(
    ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/zero", "/dev/full")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Result of danger analysis: why the command is blocked, or why it needs approval; both empty if it is harmless."""

    blocked: str = ""
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where a shell command runs: its working directory, the folders it may write to without approval, and a `closed`
    folder inside them where it may not (empty: none)."""

    folder: str
    writable: tuple[str, ...]
    closed: str = ""

    @property
    def is_closed(self) -> bool:
        """Whether the working directory is inside the closed folder."""
        return self._is_below(os.path.realpath(self.folder), self.closed)

    def is_outside(self, path: str) -> bool:
        """Whether a written path is outside the writable folders. A path that begins with an unknown value counts as
        outside."""
        if path in HARMLESS_DEVICES or path.startswith(("/dev/fd/", "&")) or path.isdecimal() or path in ("-", ""):
            return False
        if PIPE in path:
            return False
        if path[:1] in ("$", "~", VARIABLE) or COMPUTED in path or self.folder[:1] in ("~", VARIABLE):
            return True
        try:
            real = followed(Path(self.folder) / re.sub(f"[{VARIABLE}{NAME}]", "x", path))
        except ToolError:  # nobody knows where it leads
            return True
        if self._is_below(real, self.closed):
            return True
        return not any(self._is_below(real, top) for top in map(os.path.realpath, self.writable))

    @staticmethod
    def _is_below(real: str, top: str) -> bool:
        return bool(top) and (real == top or real.startswith(f"{top.rstrip('/')}/"))
