"""Paths of a Hermes home, and private files: read up to a limit, written atomically."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HomeError, ToolError

ELSEWHERE = "set HERMES_HOME to a folder"
WAYS_OUT: tuple[tuple[tuple[int, ...], str], ...] = (
    ((errno.EACCES, errno.EPERM), f"make it yours (`chown -R $USER {{folder}}`) or {ELSEWHERE} of yours."),
    ((errno.ENOTDIR, errno.EEXIST), "a file stands where a folder must be; move it away or set HERMES_HOME elsewhere."),
    ((errno.EISDIR, errno.ELOOP), "a folder or a link stands where a file must be; move it away."),
    ((errno.EROFS,), f"mount it writable, or {ELSEWHERE} of yours."),
    ((errno.ENOSPC, errno.EDQUOT), f"free some room, or {ELSEWHERE} that can be written."),
    ((errno.EIO,), "the disk, or the connection to it, fails: look at the system's log, or set HERMES_HOME elsewhere."),
    ((errno.EMFILE, errno.ENFILE), "too many files are open: end some programs, or raise the limit (`ulimit -n`)."),
    ((errno.ENOMEM,), "there is no memory left: end some programs."),
    ((errno.ENAMETOOLONG,), f"{ELSEWHERE} with a shorter name."),
    (
        (errno.ENOENT,),
        f"it, or a folder of it, is gone: see whether the disk is there (`mount`), or {ELSEWHERE} that is.",
    ),
    ((errno.EBUSY, errno.ETXTBSY), "another program uses it: end that, and try again."),
    (
        (errno.ESTALE, errno.ENODEV, errno.ENXIO, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN),
        "the disk under it is gone: connect it again, or set HERMES_HOME elsewhere.",
    ),
)
"""What a person can do where the system says one of these."""
OTHERWISE = f"try again; if it stays so, {ELSEWHERE} on another disk."
PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def read_small(path: Path, limit: int = 1 << 20) -> bytes | None:
    """The bytes of a regular file of at most `limit` bytes; None where there is no file. Raises `HomeError`."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            what = "a folder" if stat.S_ISDIR(found.st_mode) else "a device or pipe"
            raise HomeError(f"{path} is {what}, not a file: move it out of the way.")
        if found.st_size > limit:
            raise HomeError(f"{path} has {found.st_size:,} bytes, more than the {limit:,} that are read: shorten it.")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HomeError(f"{path} cannot be read ({reason(error)}): {way_out(error, path)}") from error


def write_private(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Replace the whole file, readable by its owner alone; links are followed. `durable` waits for the disk.

    Raises `HomeError`; the old content stays then.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, PRIVATE_FILE)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise HomeError(f"{path} cannot be written ({reason(error)}): {way_out(error, path)}") from error


def followed(path: str | Path) -> str:
    """The real path behind a path. Raises `ToolError` where a link on the way may not be read, as those of other
    people's processes below /proc."""
    try:
        return os.path.realpath(path)
    except OSError as error:
        raise ToolError(f"{path} cannot be followed: {reason(error)}.") from error


def reason(error: OSError) -> str:
    """The system's own words for an error."""
    return error.strerror or str(error)


def way_out(error: OSError, path: Path) -> str:
    """What a person can do about it."""
    advice = next((advice for numbers, advice in WAYS_OUT if error.errno in numbers), OTHERWISE)
    return advice.format(folder=path.parent)


def sentence(error: OSError) -> str:
    """An error of the system as a sentence: the file, the system's own words, and what to do."""
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else Path("the home/x")
    where = f"{path}: " if error.filename else ""
    return f"{where}{reason(error)}. What to do: {way_out(error, path)}"


PROFILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def own_source() -> Path:
    """The folder of this program's source: the checkout that it runs from, otherwise the installed package."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1]
    return checkout if package.parent.name == "src" and (checkout / "pyproject.toml").is_file() else package


def environment() -> Mapping[str, str]:
    """The process environment, to be passed on by the wiring; read-only by agreement."""
    return os.environ


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Paths of one home: `root` is the profile's own folder, `base` the one that all profiles share (the same
    without a profile)."""

    root: Path
    base: Path
    profile: str = ""

    @property
    def config_file(self) -> Path:
        return self.root / "config.yaml"

    @property
    def last_good_config(self) -> Path:
        return self.cache / "config.last-good.json"

    @property
    def env_file(self) -> Path:
        return self.root / ".env"

    @property
    def soul_file(self) -> Path:
        return self.root / "SOUL.md"

    @property
    def database(self) -> Path:
        return self.root / "hermes.db"

    @property
    def index(self) -> Path:
        return self.root / "index.db"

    @property
    def memories(self) -> Path:
        return self.root / "memories"

    @property
    def skills(self) -> Path:
        return self.root / "skills"

    @property
    def tools(self) -> Path:
        return self.root / "tools"

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def log_file(self) -> Path:
        return self.logs / "hermes.log"

    @property
    def locks(self) -> Path:
        return self.root / "locks"

    @property
    def chat_history(self) -> Path:
        return self.root / "chat_history"

    def ensure(self) -> Home:
        """Create the home and its working folders, for their owner alone; existing ones keep their mode.

        Raises `HomeError` where the home cannot be read or written.
        """
        try:
            self.root.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            for folder in (self.cache, self.logs, self.locks):
                folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        except OSError as error:
            out = way_out(error, self.cache if self.root.is_dir() else self.root)
            raise HomeError(f"The home {self.root} cannot be used ({reason(error)}): {out}") from error
        if not os.access(self.root, os.R_OK | os.W_OK | os.X_OK):
            raise HomeError(
                f"The home {self.root} cannot be read and written by you: make it yours (`chown -R $USER {self.root}`, "
                f"`chmod u+rwx {self.root}`), mount it writable, or set HERMES_HOME to a folder of yours."
            )
        return self


def card_workspaces(home: Home) -> Path:
    """Where cards of the board have folders of their own, whichever profile works on them."""
    return home.base / "workspace" / "board"


def current_folder() -> Path:
    """The folder where the program was started. Raises `HomeError` where it is gone."""
    try:
        return Path.cwd()
    except OSError as error:
        raise HomeError(f"The folder that you are in cannot be used ({reason(error)}): change to another.") from error


def locks_of_all_homes() -> Path:
    """The folder of locks between all homes of one person on one machine. Raises `HomeError`."""
    try:
        person = Path("~").expanduser()
    except RuntimeError as error:
        raise HomeError("No home folder is known for you.") from error
    if not person.is_dir():
        raise HomeError(f"Your home folder {person} is not there.")
    return person / ".local/state/hermes/locks"


def find_home(profile: str = "", variables: Mapping[str, str] | None = None) -> Home:
    """The home of this process: HERMES_HOME, otherwise `~/.hermes`, and the profile's folder in it. Touches no disk.

    Raises `HomeError` for a profile name outside `[a-z0-9][a-z0-9_-]{0,63}`.
    """
    named = (environment() if variables is None else variables).get("HERMES_HOME") or "~/.hermes"
    if "\0" in named or "\0" in profile:
        raise HomeError("HERMES_HOME holds a NUL character: set it to the path of a folder.")
    try:
        base = Path(named).expanduser()
    except RuntimeError as error:
        raise HomeError("No home folder is known for you: set HERMES_HOME to a folder of yours.") from error
    if not base.is_absolute():
        raise HomeError(f"HERMES_HOME is `{named}`, another folder wherever you are: set it to a path from the root.")
    if not profile:
        return Home(root=base, base=base)
    if not PROFILE.fullmatch(profile):
        raise HomeError(
            f"`{profile}` is not a profile name: at most 64 of a-z, 0-9, `-` and `_`, a letter or digit first."
        )
    return Home(root=base / "profiles" / profile, base=base, profile=profile)
