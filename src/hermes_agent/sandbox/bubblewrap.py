"""Jail by bubblewrap: an empty root with what is shown, private /tmp, process table and network, and limits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from hermes_agent.host.process import Child, start_detached
from hermes_agent.sandbox.control_group import ControlGroup
from hermes_agent.sandbox.jail import CannotJail, Cell, limits, unheld
from hermes_agent.sandbox.seccomp import filter_file, program
from hermes_agent.sandbox.walls import Access, Walls

# Where a service may listen, or others leave what is theirs; the jail has its own, bounded ones.
PRIVATE = ("/var/tmp", "/run")
SMALL = 1 << 20
MOST_LINKS = 20
MOST_PATHS = 300  # each mount takes longer than the one before: 130 ms for so many
TRY_SECONDS = 5.0
BINDS: Mapping[Access, str] = {"read": "--ro-bind", "write": "--bind"}


def build(walls: Walls) -> Bubblewrap:
    """Build the jail, after one trial. Raises `CannotJail`."""
    found = shutil.which("bwrap")
    if found is None:
        raise CannotJail("`bwrap` is not installed (apt install bubblewrap).")
    if len(walls.writable) + len(walls.readable) > MOST_PATHS:
        raise CannotJail(f"`bwrap` can show {MOST_PATHS} folders and no more: name what holds them.")
    jail = Bubblewrap(found, walls)
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    trial = start_detached([*jail.arguments(), "--", "true"], cwd="/", env={}, stdin=None, out=nowhere)
    os.close(nowhere)
    if not trial.ends_within(TRY_SECONDS) or trial.code != 0:
        trial.signal(9)
        raise CannotJail("`bwrap` is here, but the kernel does not let it make namespaces.")
    return jail


class Bubblewrap:
    """Starts programs in a bubblewrap jail; implements `Jail`. `path` is bwrap's."""

    name = "bubblewrap"
    layers = 2  # bwrap, and the first process of its process table

    def __init__(self, path: str, walls: Walls) -> None:
        self._path = path
        self.walls = walls
        self._filter = program()
        self._group = ControlGroup(walls.processes, walls.memory_mb, walls.workspaces)
        # In a user namespace of its own the kernel counts only the jail's processes; root's it does not count.
        is_root, held = os.geteuid() == 0, self._group.held
        self.limits = limits(walls, held | ({"pids"} if is_root else set()))
        self.unheld = unheld(walls, held | (set() if is_root else {"pids"}))

    def launch(self, argv: Sequence[str], *, cell: Cell, env: Mapping[str, str], stdin: int | None, out: int) -> Child:
        """See `Jail`."""
        home = cell.prepare(self.walls)
        env = cell.variables(self.walls, env, home=self._home(home), temporary="/tmp")
        own = (filter_file(self._filter),) if self._filter else ()
        filtered = [word for handle in own for word in ("--seccomp", str(handle))]
        line = [*self.arguments(cell), *filtered, "--", *argv]

        def start(line: Sequence[str]) -> Child:
            begin = partial(start_detached, line, cwd="/", env=env, stdin=stdin, out=out, passed=(*own, *cell.passed))
            return cell.launch(cell.connections, begin)

        try:
            return self._group.start(line, start)
        finally:
            for handle in own:
                os.close(handle)

    def close(self) -> None:
        """See `Jail`."""
        self._group.close()

    def arguments(self, cell: Cell | None = None) -> list[str]:
        """The command line of bwrap, up to the program."""
        is_shared = self.walls.network or (cell is not None and cell.connections)
        spaces = ["--unshare-pid", "--unshare-ipc"] + ([] if is_shared else ["--unshare-net"])
        mounts = self._mounts(cell)
        words = [word for path in sorted(mounts, key=_depth) for word in mounts[path]]
        # As root the settings of the kernel would be writable: they belong to user 0, whatever its capabilities.
        kernel = ["--proc", "/proc", "--remount-ro", "/proc"]
        own = [word for part in _record(cell, self.walls) for word in part] if cell else []
        return [self._path, *spaces, "--cap-drop", "ALL", *words, *kernel, *own, "--remount-ro", "/"]

    def _home(self, home: Path) -> str:
        """Where commands see the session's home: at the place of the person's, so that paths stay what they are."""
        return self.walls.person if self.walls.person not in ("", "/") else str(home)

    def _mounts(self, cell: Cell | None) -> dict[str, Sequence[str]]:
        """The words that make each path; parents must come first."""
        walls, size = self.walls, self.walls.tmp_mb << 20
        mounts: dict[str, Sequence[str]] = {path: _tmpfs(path, size) for path in ("/tmp", *PRIVATE)}
        mounts["/dev"] = ["--dev", "/dev"]
        mounts["/dev/shm"] = [*_tmpfs("/dev/shm", size), "--remount-ro", "/dev"]
        shown = dict(walls.shown(*(cell.works_in if cell else ())))
        if cell is not None:
            home = cell.session / "home"
            mounts["/tmp"] = ["--bind", str(cell.session / "tmp"), "/tmp"]
            where = os.path.realpath(self._home(home))
            if walls.access(where, *cell.works_in) == "none":
                mounts[where] = ["--bind", str(home), where]
            if walls.caches:
                shown[os.path.realpath(cell.caches(walls))] = "write"
        known: dict[str, bool] = {"": False, "/": False}
        for path, access in shown.items():
            way = _way(path, shown)
            if access == "none" and way is not None:
                mounts |= _hidden(path)
            elif access == "none" or _is_linked(path, known) or not os.path.lexists(path):
                continue  # bwrap would follow a link that was put there since; what is not there takes time as well
            else:
                mounts[path] = [f"{BINDS[access]}-try", path, path]
            mounts |= {each: [f"{BINDS['write']}-try", each, each] for each in way or ()}
        if walls.network:
            resolver = os.path.realpath("/etc/resolv.conf")
            mounts.setdefault(resolver, ["--ro-bind-try", resolver, resolver])
        names = [*walls.readable, *walls.writable, walls.person or "/", cell.workspace if cell else "/"]
        linked = [name for name in names if _is_linked(os.path.abspath(name), known)]  # noqa: PTH100 - links stay
        links = {link: to for name in linked for link, to in _links(name) if not _within(link, mounts)}
        return mounts | {link: ["--symlink", to, link] for link, to in links.items()}


def _way(path: str, shown: Mapping[str, Access]) -> list[str] | None:
    """The folders on the way from what is shown to a path in it, where they can be written: they become mounts too, for
    who could move one away would put another in its place. None for a path that is in nothing shown, or not there."""
    way: list[str] = []
    parent = path
    while (parent := parent.rpartition("/")[0] or "/") not in shown:
        if parent == "/":
            return None
        way.append(parent)
    if shown[parent] == "none" or not os.path.lexists(path):
        return None
    return way if shown[parent] == "write" else []


def _is_linked(path: str, known: dict[str, bool]) -> bool:
    """Whether a link is on the way to a path, or there; each folder is looked at once."""
    if path not in known:
        known[path] = _is_linked(path.rpartition("/")[0], known) or Path(path).is_symlink()
    return known[path]


def _links(name: str) -> Iterator[tuple[str, str]]:
    """The links on the way to a path, with what each of them says."""
    for _ in range(MOST_LINKS):
        parts = os.path.abspath(name).split("/")  # noqa: PTH100 - as text, and without following links
        ways = ("/".join(parts[:end]) for end in range(2, len(parts) + 1))
        link = next(filter(os.path.islink, ways), None)
        if link is None:
            return
        to = str(Path(link).readlink())
        yield link, to
        name = os.path.join(os.path.dirname(link), to, os.path.relpath(name, link))  # noqa: PTH118, PTH120 - as above


def _within(path: str, mounts: Mapping[str, Sequence[str]]) -> bool:
    return any(path != each and path.startswith(f"{each.rstrip('/')}/") for each in mounts)


def _depth(path: str) -> int:
    return path.count("/") if path != "/" else 0


def _tmpfs(path: str, size: int) -> list[str]:
    return ["--perms", "1777", "--size", str(size), "--tmpfs", path]


def _hidden(path: str) -> dict[str, Sequence[str]]:
    """The mount over a closed path; none over what this user can neither open, nor make so, nor put something in the
    place of."""
    folder = path.rpartition("/")[0] or "/"
    opens = os.access(path, os.R_OK) or os.access(path, os.X_OK) or os.access(folder, os.W_OK)
    if not opens and os.lstat(path).st_uid != os.geteuid():
        return {}
    words = ["--perms", "0755", "--size", str(SMALL), "--tmpfs"] if Path(path).is_dir() else ["--ro-bind", os.devnull]
    return {path: [*words, path]}


def _record(cell: Cell, walls: Walls) -> Iterator[tuple[str, str, str]]:
    """The command's own record, which is in a closed folder: files that can be written and not replaced."""
    for name in cell.files:
        yield "--bind", str(cell.folder / name), str(cell.folder / name)
    long = cell.folder / "command"
    for path in (cell.kept, long, *cell.borrows(walls)):
        if path is not None and path.exists():
            yield "--ro-bind", str(path), str(path)
