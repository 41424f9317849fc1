"""Context of operations: who asks, on which system, in which conversation; and the system for offline operations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from hermes_agent.app.household import local_owner, open_store_of
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.store.versions import Author

if TYPE_CHECKING:
    from hermes_agent.app.settings import Settings
    from hermes_agent.app.system import System
    from hermes_agent.host.config import Loaded
    from hermes_agent.host.paths import Home
    from hermes_agent.store.database import Store

    HomeSystem: TypeAlias = "OfflineSystem | System"
    """What an operation needs that starts no run."""

S = TypeVar("S", bound="HomeSystem", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineSystem:
    """A home with settings and store open but no scheduler, for commands that only read or change stored data. It opens
    much faster than a full system."""

    home: Home
    loaded: Loaded[Settings]
    store: Store
    clock: Clock
    hermes: None = None

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self.loaded.value

    @property
    def notice(self) -> str:
        """What a person should know first: how the database was found. Empty where nothing."""
        return self.store.notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Access(Generic[S]):
    """One person's access to a system. `where` is the conversation they ask from: what others there could read is
    limited (None: nobody else reads). `session` is their current session, `folder` their working folder.

    Operations raise `HermesError` for what the person may not do; what they may not know is reported as missing.
    """

    system: S
    who: Principal
    where: Conversation | None = None
    session: str = ""
    folder: str = ""

    @property
    def sees_all(self) -> bool:
        """Whether the person may see everybody's data (the owner)."""
        return self.who.standing is Standing.OWNER

    @property
    def author(self) -> Author:
        """The author recorded in ledgers."""
        return Author.OWNER if self.sees_all else Author.MEMBER

    def check_owner(self, otherwise: str) -> None:
        """Raise `HermesError` with this sentence unless the person is the owner."""
        if not self.sees_all:
            raise HermesError(otherwise)


@asynccontextmanager
async def open_offline(home: Home, loaded: Loaded[Settings], folder: str = "") -> AsyncIterator[Access[OfflineSystem]]:
    """Context manager: the local owner's access to an `OfflineSystem`. Raises `HomeError`, `StoreError`."""
    clock = SystemClock()
    store = await open_store_of(home, loaded.value.store, clock)
    try:
        system = OfflineSystem(home=home, loaded=loaded, store=store, clock=clock)
        yield Access(system=system, who=local_owner(), folder=folder)
    finally:
        await store.close()
