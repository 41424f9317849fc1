"""Jails for commands on this machine: limit what they may write, see, and reach over the network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.late import late
from hermes_agent.host.process import Child
from hermes_agent.sandbox.place import PlaceFailed

# Each kind of jail and what builds it; the first that works on this machine is taken where none is named.
JAILS: dict[str, str] = {
    "bubblewrap": "hermes_agent.sandbox.bubblewrap:build",
    "landlock": "hermes_agent.sandbox.landlock:build",
}
UNBOUNDED = ("/", "/dev", "/etc", "/proc", "/run", "/sys", "/usr", "/var")


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """Limits on every command of a jailed place.

    `writable` are absolute paths that may be changed (besides the session's folder), `hidden` are invisible,
    `readable` are visible but read-only paths inside of hidden ones; `lends` is the only folder whose files can
    be lent to a command (links elsewhere lead nowhere). `processes` and `tmp_mb` limit the number of processes
    and the size of `/tmp`, where the kind of jail can.
    """

    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    lends: str = ""
    network: bool = False
    processes: int = 512
    tmp_mb: int = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Access of one command beyond the walls: `folder` (its record, where only `files` may be written and nothing
    replaced), its kept shell, the session's folder, and files lent to it for reading. `launch` starts the
    program from a thread whose connections are watched; None: nobody watches."""

    folder: Path
    files: tuple[str, ...]
    kept: Path | None
    workspace: str
    lent: tuple[str, ...] = ()
    launch: Callable[[Callable[[], Child]], Child] | None = None

    def borrows(self, walls: Walls) -> list[Path]:
        """The files that it is lent, of those allowed by the walls."""
        return [path for path in map(Path, self.lent) if walls.lends and str(path.parent) == walls.lends]


class Jail(Protocol):
    """Starts programs with restricted access.

    - `launch` starts the program inside the walls, detached, in its own session, in `cell.folder`; both outputs
      go to `out`; blocks for some milliseconds; raises `OSError`;
    - neither the program nor its children can lift the walls;
    - `layers` is the number of the jail's processes between the one that `launch` returns and the program.
    """

    @property
    def name(self) -> str: ...

    @property
    def layers(self) -> int: ...

    def launch(
        self, argv: Sequence[str], *, cell: Cell, env: Mapping[str, str], stdin: int | None, out: int
    ) -> Child: ...


def in_thread(start: Callable[[], Child]) -> Child:
    """Call `start` in a thread of its own, which may restrict itself for good. Raises `OSError`."""
    with ThreadPoolExecutor(1, "into the jail") as thread:
        return thread.submit(start).result()


class CannotJail(PlaceFailed):
    """This machine lacks what the kind of jail needs; the sentence says what."""


def check_workspace(folder: str) -> None:
    """Raise `CannotJail` where a writable folder would be the whole machine."""
    if str(Path(folder).resolve()) in UNBOUNDED:
        raise CannotJail(
            f"Commands in a jail may write to their folder, and {folder} holds the system: work elsewhere."
        )


def jail_of(kind: str, walls: Walls) -> Jail:
    """The jail of this kind (`any`: the strongest that works here). Blocks. Raises `CannotJail`: commands never run
    without walls where walls were requested."""
    reasons = []
    for name in JAILS if kind == "any" else {kind} & set(JAILS):
        try:
            built: Jail = late(JAILS[name])(walls)
        except CannotJail as reason:
            reasons.append(f"{name}: {reason}")
            continue
        return built
    raise CannotJail(f"Commands cannot be jailed here (`terminal.jail`). {' '.join(reasons)}")


SECRET = re.compile(
    r"(^|_)(API_?KEYS?|KEY|TOKENS?|SECRETS?|PASS(WORD|WD|PHRASE)?|CREDENTIALS?|COOKIE|DSN)(_|$)|^HERMES_", re.IGNORECASE
)
# Pagers and prompts would wait for a person who is not there.
QUIET = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


def scrubbed(variables: Mapping[str, str], passthrough: Iterable[str] = ()) -> dict[str, str]:
    """The variables without those whose names look like secrets, except those in `passthrough`."""
    allowed = set(passthrough)
    kept = {name: value for name, value in variables.items() if name in allowed or not SECRET.search(name)}
    return {**kept, **QUIET}
