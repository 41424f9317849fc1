"""Unmodified skills, one folder per hash; a person's decisions about skills, and counters of use."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HomeError
from hermes_agent.host.locks import change_under
from hermes_agent.host.paths import PRIVATE_FOLDER, read_small, write_private

LARGEST = 1 << 26
T = TypeVar("T")


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A person's decisions about skills. `pinned` skills are in every new prompt, and only the person changes them;
    `trusted` maps a name to the hash of the SKILL.md whose commands may run; `removed` maps a removed bundled
    skill to its hash; `bases` maps a changed copy to the layer and hash of its original, `hub:sha256:...`."""

    pinned: tuple[str, ...] = ()
    trusted: dict[str, str] = {}
    removed: dict[str, str] = {}
    bases: dict[str, str] = {}


def base_of(state: State, name: str) -> tuple[str, str]:
    """The layer and hash of the original of a changed copy; empty where it is no copy."""
    layer, _, found = state.bases.get(name, "").partition(":")
    return (layer, found) if found else ("", "")


def based(name: str, layer: str, found: str) -> Callable[[State], State]:
    """The change that records the original of a copy; without a hash, that it has none."""
    added = {name: f"{layer}:{found}"} if found else {}
    return lambda state: msgspec.structs.replace(state, bases={**without(state.bases, name), **added})


def removed_by_hand(name: str) -> Callable[[State], State]:
    """The change that removes a bundled skill."""
    return lambda state: msgspec.structs.replace(state, removed={**state.removed, name: "removed"})


def brought_back(name: str) -> Callable[[State], State]:
    """The change that restores it."""
    return lambda state: msgspec.structs.replace(state, removed=without(state.removed, name))


def pinned(name: str, *, off: bool = False) -> Callable[[State], State]:
    """The change that pins or unpins a skill."""

    def change(state: State) -> State:
        others = tuple(each for each in state.pinned if each != name)
        return msgspec.structs.replace(state, pinned=others if off else (*others, name))

    return change


def without(old: dict[str, T], name: str) -> dict[str, T]:
    """The mapping without one name."""
    return {key: value for key, value in old.items() if key != name}


def whole(path: Path, kind: type[T]) -> T | None:
    """The content of a JSON file; None where it is missing or incomplete. Blocks."""
    content = read_small(path, LARGEST)
    try:
        return None if content is None else msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError:
        return None


class JsonFile(Generic[T]):
    """A value in a JSON file (`empty` where there is none), re-read when the file changed. Reads block: waking a
    thread would take longer."""

    def __init__(self, path: Path, kind: type[T], empty: T) -> None:
        self.path, self._kind, self._empty = path, kind, empty
        self._seen: tuple[tuple[int, ...], T] = ((), empty)

    def get(self) -> T:
        """The value. Raises `HomeError` for a file that is not ours."""
        try:
            found = self.path.stat()
        except OSError:
            return self._empty
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp != self._seen[0]:
            self._seen = (stamp, self._read())
        return self._seen[1]

    async def change(self, change: Callable[[T], T]) -> T:
        """Read, change and write under a lock."""

        def work() -> T:
            changed = change(self._read())
            write_private(self.path, msgspec.json.format(msgspec.json.encode(changed)))
            self._seen = ((), changed)
            return changed

        return await change_under(self.path.with_suffix(".lock"), work)

    def _read(self) -> T:
        content = read_small(self.path, LARGEST)
        try:
            return self._empty if content is None else msgspec.json.decode(content, type=self._kind)
        except msgspec.DecodeError as error:
            raise HomeError(f"{self.path} cannot be read ({error}): repair it, or move it out of the way.") from error


class StateFile(JsonFile[State]):
    """File `skills/.state.json` of a home: which skills are pinned, trusted or removed, and which original each
    local copy is based on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / ".state.json", State, State())


What = Literal["views", "uses", "patches"]


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """Usage counters of one skill; `last` is the time of the latest use, in seconds since 1970."""

    views: int = 0
    uses: int = 0
    patches: int = 0
    last: float = 0.0


class Usage:
    """Usage counters by skill name, in `skills/.usage.json`."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._path = folder / ".usage.json"
        self._clock = clock

    async def count(self, name: str, what: What) -> None:
        """Increment a counter."""

        def work() -> None:
            everything = self.all()
            before = everything.get(name, Used())
            counted = {what: getattr(before, what) + 1, "last": self._clock.now()}
            everything[name] = msgspec.structs.replace(before, **counted)
            write_private(self._path, msgspec.json.encode(everything), durable=False)

        await change_under(self._path.with_suffix(".lock"), work)

    def all(self) -> dict[str, Used]:
        """All counters. Blocks; a damaged file counts as empty."""
        return whole(self._path, dict[str, Used]) or {}


HUB = ".hub"
"""The folder of what comes from elsewhere, in the home's skills."""
STORE = "store"
SHORT = 16


class Trust(StrEnum):
    """Trust level of a source.

    `trusted`: scanner warnings are shown and the skill is accepted. `community`: warnings refuse it unless a
    person insists. Scanner alarms need a person's insistence in both.
    """

    TRUSTED = "trusted"
    COMMUNITY = "community"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One installed skill.

    `ref` is the full name of what pointed at the commit, `path` its folder in the repository, `at` is in seconds since
    1970, `accepted` lists findings that a person accepted; `before` is the commit and hash before the last update.
    """

    url: str
    commit: str
    hash: str
    path: str
    ref: str = ""
    tap: str = ""
    trust: Trust = Trust.COMMUNITY
    at: float = 0.0
    accepted: tuple[str, ...] = ()
    before: tuple[str, str] | None = None


class Locked(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the lock file of installed skills: `skills` are in use; `retired` were uninstalled and can be
    restored."""

    version: int = 1
    skills: dict[str, Entry] = {}
    retired: dict[str, Entry] = {}


class Lock(JsonFile[Locked]):
    """The lock file (`lock.json`) that lists the installed skills of one home; an installation takes effect with
    its change."""

    def __init__(self, home: Path) -> None:
        self.folder = home / HUB
        super().__init__(self.folder / "lock.json", Locked, Locked())


def stored(home: Path, found: str, name: str) -> Path:
    """The folder of the files with that hash; complete or missing."""
    return home / HUB / STORE / found.removeprefix("sha256:")[:SHORT] / name


def used_folders(home: Path) -> list[Path]:
    """The folders of the skills in use, also of missing ones."""
    return [stored(home, entry.hash, name) for name, entry in Lock(home).get().skills.items()]


def put(name: str, entry: Entry) -> Callable[[Locked], Locked]:
    """The lock change that enables a skill."""
    return lambda old: msgspec.structs.replace(
        old,
        skills={**old.skills, name: entry},
        retired=without(old.retired, name),
    )


def retire(name: str) -> Callable[[Locked], Locked]:
    """The lock change that disables a skill."""
    return lambda old: msgspec.structs.replace(
        old,
        skills=without(old.skills, name),
        retired={**old.retired, name: old.skills[name]} if name in old.skills else old.retired,
    )


LARGEST_FILE = 1 << 20
"""Bytes of a file that is taken from elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A file of a skill: bytes and the executable bit."""

    content: bytes
    runs: bool = False


Files = Mapping[str, Content]
"""By path inside the skill, with `/`."""


def hash_of_files(files: Files) -> str:
    """Hash of all names, contents and executable bits."""
    lines = sorted(
        f"{path}\0{'x' if each.runs else '-'}\0{hashlib.sha256(each.content).hexdigest()}\n"
        for path, each in files.items()
    )
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def own_files(folder: Path) -> list[Path]:
    """The files that stand in a skill's folder: hidden ones, links and those of more than four megabytes left out.
    Blocks."""
    return [
        path
        for path in (sorted(folder.rglob("*")) if folder.is_dir() else ())
        if path.is_file()
        and not path.is_symlink()
        and not is_hidden(path.relative_to(folder).as_posix())
        and path.stat().st_size <= LARGEST_FILE * 4
    ]


def files_of_folder(folder: Path) -> dict[str, Content]:
    """The same with what they hold. Blocks."""
    return {
        path.relative_to(folder).as_posix(): Content(content=path.read_bytes(), runs=os.access(path, os.X_OK))
        for path in own_files(folder)
    }


def hash_of_folder(folder: Path) -> str:
    """The hash of a skill's files; empty where there are none. Blocks."""
    files = files_of_folder(folder)
    return hash_of_files(files) if files else ""


def write_files(folder: Path, files: Files) -> None:
    """Write a skill into a new folder and sync it to disk. Blocks."""
    for name, each in files.items():
        path = folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o700 if each.runs else 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(each.content)
            file.flush()
            os.fsync(file.fileno())


def text_or_none(content: bytes) -> str | None:
    """The content as text; None for binary content."""
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def is_hidden(name: str) -> bool:
    """Whether a path inside a skill is no content: `.git`, `.DS_Store`."""
    return any(part.startswith(".") for part in name.split("/"))


QUARANTINE = "quarantine"
NEW = ".new-"
HOUR = 3600.0


class Depot:
    """Content-addressed store of skill files in `.hub/store` of one home. A folder is written elsewhere and moved in
    as a whole. Blocks."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.quarantine = home / HUB / QUARANTINE

    def hold(self, name: str, files: Files) -> Path:
        """Write files to the quarantine, where a person can look at them; the folder."""
        self.quarantine.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        folder = self.quarantine / os.urandom(6).hex() / name
        write_files(folder, files)
        return folder

    def take(self, held: Path, found: str) -> Path:
        """Move quarantined files to their final place; drop them if they are there already."""
        place = stored(self._home, found, held.name)
        place.parent.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        if hash_of_files(files_of_folder(place)) != found:
            shutil.rmtree(place.parent, ignore_errors=True)
            held.parent.rename(place.parent)
        self.drop(held)
        return place

    def keep(self, name: str, files: Files, found: str) -> None:
        """Store files under their hash, concurrently with installations."""
        folder = self._home / HUB / STORE / f"{NEW}{os.urandom(6).hex()}" / name
        folder.parent.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        write_files(folder, files)
        self.take(folder, found)

    def files(self, found: str, name: str) -> dict[str, Content]:
        """The files of that hash; empty where missing."""
        return files_of_folder(stored(self._home, found, name))

    def drop(self, held: Path) -> None:
        """Delete quarantined files."""
        shutil.rmtree(held.parent, ignore_errors=True)

    def sweep(self, used: Collection[tuple[str, str]], now: float) -> None:
        """Delete leftovers of killed programs, and folders that no (hash, name) in `used` needs; recent ones stay
        for an hour."""
        shutil.rmtree(self.quarantine, ignore_errors=True)
        kept = {stored(self._home, found, name).parent.name for found, name in used}
        store = self._home / HUB / STORE
        for folder in store.iterdir() if store.is_dir() else ():
            fresh = folder.name.startswith(NEW) and folder.stat().st_mtime + HOUR > now
            if folder.name not in kept and not fresh:
                shutil.rmtree(folder, ignore_errors=True)
