"""Jail by macOS' seatbelt (`sandbox-exec`): a profile as text. Its text is tested; it was not tried on a Mac."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence

from hermes_agent.host.process import Child, start_detached
from hermes_agent.sandbox.jail import CannotJail, Cell, limits, unheld
from hermes_agent.sandbox.walls import Access, Walls

# What every program needs: itself, its children, facts about the system, devices.
BASE = """\
(version 1)
(deny default)
(allow process-exec process-fork process-info* sysctl-read mach-lookup ipc-posix-shm* file-read-metadata)
(allow signal (target same-sandbox))
(allow file-read* (literal "/") (subpath "/private/etc") (subpath "/private/var/db") (subpath "/dev"))
(allow file-write* file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (subpath "/dev/fd"))
"""
RULES: Mapping[Access, str] = {
    "read": "(allow file-read* (subpath {}))",
    "write": "(allow file-read* file-write* (subpath {}))",
    "none": "(deny file* (subpath {}))",
}


def build(walls: Walls) -> Seatbelt:
    """Build the jail. Raises `CannotJail`."""
    found = shutil.which("sandbox-exec")
    if found is None:
        raise CannotJail("`sandbox-exec` is not here; macOS has it.")
    return Seatbelt(found, walls)


class Seatbelt:
    """Starts programs under `sandbox-exec`; implements `Jail`. `path` is its path."""

    name = "seatbelt"
    layers = 0

    def __init__(self, path: str, walls: Walls) -> None:
        self._path = path
        self.walls = walls
        self.limits = limits(walls, {"pids"})  # the number would count all of this user's
        self.unheld = unheld(walls, ())

    def launch(self, argv: Sequence[str], *, cell: Cell, env: Mapping[str, str], stdin: int | None, out: int) -> Child:
        """See `Jail`."""
        home = cell.prepare(self.walls)
        env = cell.variables(self.walls, env, home=str(home), temporary=str(cell.session / "tmp"))
        line = [self._path, "-p", profile(cell, self.walls), *argv]
        return start_detached(line, cwd="/", env=env, stdin=stdin, out=out, passed=cell.passed)

    def close(self) -> None:
        """Nothing is held."""


def profile(cell: Cell, walls: Walls) -> str:
    """The profile; of its rules the last that fits decides, so parents stand before what is in them."""
    return BASE + "\n".join(_rules(cell, walls)) + "\n"


def _rules(cell: Cell, walls: Walls) -> Iterator[str]:
    for path, access in walls.shown(*cell.works_in).items():
        yield RULES[access].format(_quoted(path))
    caches = [cell.caches(walls)] if walls.caches else []
    for folder in (str(cell.session / "tmp"), str(cell.session / "home"), *caches):
        yield RULES["write"].format(_quoted(os.path.realpath(folder)))
    for name in cell.files:
        yield f"(allow file-read* file-write-data (literal {_quoted(str(cell.folder / name))}))"
    for record in (cell.kept, cell.folder / "command", *cell.borrows(walls)):
        if record is not None:
            yield f"(allow file-read* (literal {_quoted(str(record))}))"
    if walls.network:
        yield "(allow network* system-socket)"


def _quoted(path: str) -> str:
    return '"{}"'.format(path.replace("\\", "\\\\").replace('"', '\\"'))
