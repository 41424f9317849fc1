"""Every kind of place, made on a folder of the test's; what this machine cannot do is skipped by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.host.late import late
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.environment import scrubbed
from hermes_agent.sandbox.jail import CannotJail, Walls, jail_of
from hermes_agent.sandbox.place import PLACES, Place


def seen_environment() -> dict[str, str]:
    return scrubbed({**os.environ, "COLOUR": "blue"})


def local(folder: Path) -> Place:
    place: Place = late(PLACES["local"])(folder=folder / "exec", env=seen_environment())
    return place


def jailed(kind: str) -> Callable[[Path], Place]:
    def make(folder: Path) -> Place:
        made = Walls(hidden=(str(folder / "exec"),))
        try:
            jail = jail_of(kind, made)
        except CannotJail as reason:
            pytest.skip(f"no {kind} here: {reason}")
        return LocalPlace(folder=folder / "exec", env=seen_environment(), jail=lambda: jail)

    return make


MAKERS: dict[str, Callable[[Path], Place]] = {
    "local": local,
    "bubblewrap": jailed("bubblewrap"),
    "landlock": jailed("landlock"),
}
