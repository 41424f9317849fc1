"""The notes of a home for commands that need no whole system, and who it is that changes them."""

from __future__ import annotations

import getpass

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.ids import RandomIds
from hermes_agent.core.inbound import Principal, Standing
from hermes_agent.host.paths import Home
from hermes_agent.memory.notes import By, Notes
from hermes_agent.memory.settings import MemorySettings
from hermes_agent.store.database import Store
from hermes_agent.store.versions import Author


def local_owner() -> Principal:
    """The person of this machine."""
    return Principal(platform="cli", user=getpass.getuser(), standing=Standing.OWNER)


def notes_of(home: Home, store: Store, settings: MemorySettings) -> Notes:
    """The notes of that home."""
    return Notes(home=home, store=store, clock=SystemClock(), ids=RandomIds(), settings=settings)


def owner_by() -> By:
    """The person of this machine as the author of a change."""
    return By(author=Author.OWNER, principal=local_owner().key)
