"""Protocol of an external memory: recalls texts that fit a question, and stores what was said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.tool import CallContext
from hermes_agent.host.http import Http
from hermes_agent.store.database import Store
from hermes_agent.store.facts.facts import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A message and its reply, with the session id."""

    session: str
    said: str
    reply: str


class Backend(Protocol):
    """The external memory of one person.

    - `recall` returns a few short texts, the best first; none where nothing fits;
    - `remember` stores an exchange, `add` one fact; `source` says who stated it and where;
    - `leaving` gets the words of the person and the agent that a compaction removes, at most about 16,000
      characters, without tool results, pages and files;
    - `ended` says that the session is idle for now; it may continue later;
    - `health` returns a few words when the memory answers;
    - all raise `HermesError` with a sentence that names the backend, and may be cancelled at any time.
    """

    async def health(self) -> str: ...

    async def recall(self, query: str) -> Sequence[str]: ...

    async def remember(self, exchange: Exchange) -> None: ...

    async def add(self, fact: str, source: Source, /) -> None: ...

    async def leaving(self, session: str, text: str) -> None: ...

    async def ended(self, session: str) -> None: ...


class ToldAlready:
    """Mixin for a `Backend` that stores each exchange at once and needs nothing at compaction or session end."""

    __slots__ = ()

    async def leaving(self, session: str, text: str) -> None:
        """Does nothing."""

    async def ended(self, session: str) -> None:
        """Does nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Dependencies of a backend.

    `secret` returns a secret by its name (empty: missing), `url` is the address (empty: the service's own),
    `space` separates people. `store` and `folder` are for local data; `environment` is that of programs.
    """

    http: Http
    secret: Callable[[str], str]
    url: str
    space: str
    store: Store
    clock: Clock
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


BackendFor = Callable[[CallContext], Awaitable[Backend]]
"""The memory of whoever speaks in a call. Raises `ToolError` where that is nobody, or others read along."""

SourceFor = Callable[[CallContext], Awaitable[Source]]
"""Who changes a fact in a call, and what made them."""
