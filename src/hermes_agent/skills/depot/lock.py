"""`skills/.hub/lock.json`: which skills came from elsewhere, from which commit, with which hash. It decides: a folder
that it does not name is not there."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import msgspec

from hermes_agent.core.errors import HomeError
from hermes_agent.host.files import read_small, write_private
from hermes_agent.host.locks import change_under
from hermes_agent.skills.depot import HUB, STORE

LARGEST = 1 << 24
SHORT = 16


class Trust(StrEnum):
    """How far a source is believed. `trusted`: what the scanner warns of is shown and taken. `community`: it is refused
    unless a person insists. What the scanner is alarmed by, a person has to insist on for both."""

    TRUSTED = "trusted"
    COMMUNITY = "community"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One skill. `ref` is the full name of what pointed at the commit, `path` its folder in the repository, `at` is in
    seconds since 1970, `accepted` what a person insisted on; `before` is the commit and hash before the last update."""

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
    """`skills` are in use; `retired` were uninstalled, and can be brought back."""

    version: int = 1
    skills: dict[str, Entry] = {}
    retired: dict[str, Entry] = {}


class Lock:
    """The lock of one home. `get` blocks."""

    def __init__(self, home: Path) -> None:
        self.folder = home / HUB
        self.path = self.folder / "lock.json"

    def get(self) -> Locked:
        """What it says; nothing where there is none. Raises `HomeError` for a file that is not ours."""
        content = read_small(self.path, LARGEST)
        try:
            return Locked() if content is None else msgspec.json.decode(content, type=Locked)
        except msgspec.DecodeError as error:
            raise HomeError(f"{self.path} cannot be read ({error}): repair it, or move it out of the way.") from error

    async def change(self, change: Callable[[Locked], Locked]) -> Locked:
        """Read, change and replace it as a whole: the moment in which an installation happens."""

        def work() -> Locked:
            changed = change(self.get())
            write_private(self.path, msgspec.json.format(msgspec.json.encode(changed)))
            return changed

        return await change_under(self.path.with_suffix(".lock"), work)


def stored(home: Path, found: str, name: str) -> Path:
    """Where the files of that hash stand; a folder of it is whole or not there."""
    return home / HUB / STORE / found.removeprefix("sha256:")[:SHORT] / name


def used_folders(home: Path) -> list[Path]:
    """The folders of the skills that are in use; one that is gone is among them too."""
    return [stored(home, entry.hash, name) for name, entry in Lock(home).get().skills.items()]


def put(name: str, entry: Entry) -> Callable[[Locked], Locked]:
    """The change that takes a skill into use."""
    return lambda old: msgspec.structs.replace(
        old,
        skills={**old.skills, name: entry},
        retired={key: value for key, value in old.retired.items() if key != name},
    )


def retire(name: str) -> Callable[[Locked], Locked]:
    """The change that takes it out of use."""
    return lambda old: msgspec.structs.replace(
        old,
        skills={key: value for key, value in old.skills.items() if key != name},
        retired={**old.retired, name: old.skills[name]} if name in old.skills else old.retired,
    )
