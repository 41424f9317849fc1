"""Paths of a Hermes home: HERMES_HOME, its profiles, and the files below it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HomeError
from hermes_agent.host.paths import PRIVATE_FOLDER, reason, way_out

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
