"""Protocol of an external memory: recalls texts that fit a question, and stores what was said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.tool import CallContext
from hermes_agent.host.http import Http
from hermes_agent.store.database import Store
from hermes_agent.store.facts.facts import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A person's message and the agent's reply, with the session id, for an external memory to store."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Dependencies of an external memory. `secret` returns a secret by its name (empty: missing), `url` is the address
    (empty: the service's own), `space` separates people. `store` and `folder` are for local data; `environment` is that
    of programs."""

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


LONGEST_ANSWER = 1_000_000
SECONDS = 20.0
GOOD = range(200, 300)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """HTTP client of an external memory service: its name, address and authentication headers."""

    name: str
    url: str
    http: Http
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    async def ask(
        self, method: str, path: str, body: Mapping[str, object] | None = None, *, known: tuple[int, ...] = ()
    ) -> Any:  # noqa: ANN401 - each backend's own file reads what its service says
        """Send a request; the JSON of the answer, None for an empty one. Raises `HermesError`."""
        address = f"{self.url.rstrip('/')}{path}"
        try:
            found = await self.http.client(address).request(
                method, address, json=body, headers=dict(self.headers), timeout=SECONDS
            )
        except self.http.failures as error:
            raise HermesError(f"{self.name} at {self.url} cannot be reached ({type(error).__name__}).") from error
        if found.status_code not in GOOD and found.status_code not in known:
            raise HermesError(f"{self.name} refused ({found.status_code}): {found.text[:200].strip()}")
        if len(found.content) > LONGEST_ANSWER:
            raise HermesError(f"{self.name} answered with more than {LONGEST_ANSWER:,} bytes.")
        try:
            return msgspec.json.decode(found.content) if found.content else None
        except msgspec.DecodeError as error:
            raise HermesError(f"{self.name} answered with something that is not JSON.") from error


def rows(found: object, *path: str) -> list[Mapping[str, Any]]:
    """The objects in the list at that path; none where the answer has another shape."""
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def texts(found: list[Mapping[str, Any]], *names: str) -> list[str]:
    """Of each row the first of these fields with a non-empty text."""
    chosen = (next((row[name] for name in names if isinstance(row.get(name), str) and row[name]), "") for row in found)
    return [text for text in chosen if text]
