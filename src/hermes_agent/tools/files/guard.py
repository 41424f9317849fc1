"""Access control for paths in the file tools, and opening of files without races."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import Refused, ToolError
from hermes_agent.host.files import followed
from hermes_agent.host.late import Needs
from hermes_agent.host.paths import Home, own_source
from hermes_agent.sandbox.walls import CREDENTIAL_FILES, CREDENTIAL_FOLDERS, SYSTEM_CREDENTIALS
from hermes_agent.tools.settings import ApprovalSettings

# Trees that hold devices and views of the kernel instead of files.
KERNEL_TREES = ("/proc", "/sys", "/dev")
# Below HERMES_HOME; the second group may be read, never written by a tool.
HOME_CREDENTIALS = (".env", "auth.json", "mcp-tokens", "checkpoints")
HOME_STATE = ("hermes.db*", "index.db*", "config.yaml", "approvals.yaml")
KEY_NAMES = ("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "id_rsa", "id_dsa", "id_ecdsa*", "id_ed25519*")
PUBLIC_KEYS = "*.pub"
OPEN_SOURCE = "`hermes config set approvals.own_source true` lets the agent work on it"
_KINDS = (
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Decides which paths the file tools may read and write.

    `home` is HERMES_HOME, `person` the user's home folder, `source` the program's own source if it is read-only.
    `roots` confines every path to these folders; None leaves reads and writes free (writes outside the workspace
    then need approval).
    """

    home: Path
    person: Path
    roots: tuple[Path, ...] | None = None
    source: Path | None = None

    def locate(self, path: str, workspace: str, *, writes: bool = False) -> Path:
        """Resolve `path` to a real path and check it. Raises `Refused` with the reason."""
        if not path or "\0" in path:
            raise ToolError("The path is empty or holds a NUL character.")
        named = Path(workspace) / (self.person / path[2:] if path.startswith("~/") else path)
        real = Path(followed(named))
        self._confine(path, Path(os.path.normpath(named)), real)
        reason = self.objection(real, writes=writes)
        if reason:
            raise Refused(f"{path} was refused: {reason}.")
        return real

    def objection(self, real: Path, *, writes: bool = False) -> str:
        """Why this real path is off limits; empty if it is allowed."""
        text = str(real)
        if any(_below(text, tree) for tree in KERNEL_TREES):
            return "it is a device or a view of the kernel, not a file"
        if self._is_credential(text, real.name.lower()):
            return "it may hold credentials, which tools never see"
        if writes and _matches(real, self._home, HOME_STATE):
            return "it is this program's own state; change it with the `hermes` command"
        if writes and self.source is not None and _below(text, str(self.source)):
            return f"it is this program's own source; {OPEN_SOURCE}"
        if len(text.encode(errors="surrogateescape")) > os.pathconf("/", "PC_PATH_MAX"):
            return "the path is too long"
        return ""

    @property
    def _home(self) -> Path:
        return Path(os.path.realpath(self.home))

    def _confine(self, path: str, named: Path, real: Path) -> None:
        if self.roots is None:
            return
        roots = [os.path.realpath(root) for root in self.roots]
        if any(_below(str(real), root) for root in roots):
            return
        allowed = ", ".join(map(str, self.roots))
        inside = any(_below(str(named), root) for root in (*map(str, self.roots), *roots))
        what = "is a link that leads out of" if inside else "is outside"
        raise Refused(f"{path} {what} the folders that tools may use here ({allowed}).")

    def _is_credential(self, real: str, name: str) -> bool:
        person, home = os.path.realpath(self.person), os.path.realpath(self.home)
        closed = [f"{person}/{each}" for each in (*CREDENTIAL_FOLDERS, *CREDENTIAL_FILES)]
        closed += [f"{home}/{each}" for each in HOME_CREDENTIALS]
        if any(_below(real, place) for place in (*closed, *SYSTEM_CREDENTIALS)):
            return True
        return any(fnmatchcase(name, pattern) for pattern in KEY_NAMES) and not fnmatchcase(name, PUBLIC_KEYS)


def open_regular(real: Path, shown: str) -> int:
    """Open the regular file at `real` (already located) for reading; returns a descriptor. Raises `ToolError` for
    anything else.

    Opens without blocking and without following a link created meanwhile, then checks the opened file.
    """
    try:
        handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP):
            raise Refused(f"{shown} is a socket or a device, not a file.") from error
        raise cannot(shown, "read", error) from error
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise ToolError(f"{shown} is a folder.", hint="List it with search_files(target='files').")
    raise Refused(f"{shown} is {kind_of(mode)}, not a file.")


def kind_of(mode: int) -> str:
    """The kind of a special file, in words."""
    return next((words for test, words in _KINDS if test(mode)), "something special")


def cannot(shown: str, verb: str, error: OSError) -> ToolError:
    """Map an OS error to a `ToolError`."""
    match error.errno:
        case errno.ENOENT:
            return ToolError(f"{shown} does not exist.")
        case errno.ELOOP:
            return Refused(f"{shown} is a loop of links.")
        case errno.EACCES | errno.EPERM:
            return ToolError(f"{shown} cannot be {_PAST[verb]}: permission denied.")
        case errno.ENOSPC | errno.EDQUOT:
            return ToolError(f"{shown} cannot be {_PAST[verb]}: the disk is full. Nothing was changed.")
        case _:
            return ToolError(f"{shown} cannot be {_PAST[verb]}: {error.strerror or error}.")


_PAST = {"read": "read", "write": "written", "search": "searched", "remove": "removed"}


def _below(path: str, folder: str) -> bool:
    # As text: this runs several times before every call, and comparing paths as objects takes ten times as long.
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _matches(path: Path, folder: Path, patterns: Iterable[str]) -> bool:
    return path.parent == folder and any(fnmatchcase(path.name, pattern) for pattern in patterns)


def guard_of(needs: Needs) -> Guard:
    """The guard of a home, from its settings."""
    source = None if needs.get(ApprovalSettings).own_source else own_source()
    return Guard(home=needs.get(Home).root, person=Path.home(), source=source)
