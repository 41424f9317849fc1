"""What a person said about their skills: pinned, trusted, taken away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from hermes_agent.core.errors import HomeError
from hermes_agent.host.files import read_small, write_private
from hermes_agent.host.locks import change_under


class State(msgspec.Struct, frozen=True, kw_only=True):
    """`pinned` are names that every new prompt shows and nobody but the person changes; `trusted` maps a name to the
    hash of the SKILL.md whose commands may run; `removed` maps a bundled skill that was taken away to the hash that it
    had; `bases` maps a changed copy to the layer and the hash of what it was copied from, `hub:sha256:...`."""

    pinned: tuple[str, ...] = ()
    trusted: dict[str, str] = {}
    removed: dict[str, str] = {}
    bases: dict[str, str] = {}


def base_of(state: State, name: str) -> tuple[str, str]:
    """The layer and the hash of what a changed copy was made from; empty where it is no copy."""
    layer, _, found = state.bases.get(name, "").partition(":")
    return (layer, found) if found else ("", "")


def based(name: str, layer: str, found: str) -> Callable[[State], State]:
    """The change that says what a copy was made from; with no hash, that it is none."""

    def change(state: State) -> State:
        others = {key: value for key, value in state.bases.items() if key != name}
        return msgspec.structs.replace(state, bases={**others, name: f"{layer}:{found}"} if found else others)

    return change


def removed_by_hand(name: str) -> Callable[[State], State]:
    """The change that takes a bundled skill away."""
    return lambda state: msgspec.structs.replace(state, removed={**state.removed, name: "removed"})


def brought_back(name: str) -> Callable[[State], State]:
    """The change that brings it back."""

    def change(state: State) -> State:
        left = {key: value for key, value in state.removed.items() if key != name}
        return msgspec.structs.replace(state, removed=left)

    return change


class StateFile:
    """The state of one home, `skills/.state.json`, read again when the file changed: to wake a thread would take
    longer."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".state.json"
        self._stamp = 0
        self._state = State()

    def get(self) -> State:
        """The state. Raises `HomeError` for a file that is not ours."""
        try:
            found = self._path.stat()
        except OSError:
            return State()
        if found.st_mtime_ns != self._stamp:
            self._state, self._stamp = self._read(), found.st_mtime_ns
        return self._state

    async def change(self, change: Callable[[State], State]) -> State:
        """Read, change, and write under a lock, so that processes do not undo each other."""

        def work() -> State:
            state = change(self._read())
            write_private(self._path, msgspec.json.format(msgspec.json.encode(state)))
            self._stamp = 0
            return state

        return await change_under(self._path.with_suffix(".lock"), work)

    def _read(self) -> State:
        content = read_small(self._path)
        try:
            return State() if content is None else msgspec.json.decode(content, type=State)
        except msgspec.DecodeError as error:
            raise HomeError(f"{self._path} cannot be read ({error}): repair it, or move it out of the way.") from error
