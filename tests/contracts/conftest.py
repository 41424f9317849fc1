"""The fixtures of the contract of places: each kind of place, and a plain command."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hermes_agent.sandbox.place import Command, Place
from tests.contracts.places import MAKERS, remove_what_was_made


@pytest.fixture(params=sorted(MAKERS))
async def make(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Callable[[], Place]]:
    """Makes the place as another process would see it: what it knows is what was kept."""
    made: list[Place] = []

    def one() -> Place:
        made.append(MAKERS[request.param](tmp_path))
        return made[-1]

    yield one
    for place in made:
        await place.close()
    remove_what_was_made(request.param)


@pytest.fixture
def place(make: Callable[[], Place]) -> Place:
    return make()


@pytest.fixture
def plain(tmp_path: Path) -> Command:
    folder = tmp_path / "work"
    folder.mkdir()
    return Command(text="true", folder=str(folder))
