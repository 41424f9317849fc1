"""A person's decisions about skills (pinned, trusted, removed), and counters of their use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import HomeError
from hermes_agent.host.locks import change_under
from hermes_agent.host.paths import read_small, write_private

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
