"""What a memory outside the notes is: recalls what fits a question, and is told what was said."""

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
    """A message that was answered: the session's id, what the person said, the reply."""

    session: str
    said: str
    reply: str


class Backend(Protocol):
    """One person's memory.

    - `recall` gives at most a few short texts, the best first; none where nothing fits;
    - `remember` keeps an exchange, `add` one fact, of which `source` says who tells it and where it was said;
    - `leaving` is told what a compaction takes out of a session's window: what the person and the agent said, at most
      about 16,000 characters, without the words of tools, pages and files;
    - `ended` is told that nothing more is said in a session for now; it may be taken up again;
    - `health` is a few words on a memory that answers;
    - all raise `HermesError`, with a sentence that names the backend, and may be cancelled at any time.
    """

    async def health(self) -> str: ...

    async def recall(self, query: str) -> Sequence[str]: ...

    async def remember(self, exchange: Exchange) -> None: ...

    async def add(self, fact: str, source: Source, /) -> None: ...

    async def leaving(self, session: str, text: str) -> None: ...

    async def ended(self, session: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a backend is made of: the clients, the value of a secret by its name (empty: there is none), the address
    (empty: the service's own), the `space` that keeps one person's memory apart, the store and the folder for what is
    kept here, the clock, and the environment of programs."""

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
    """One service at its address, with the headers that let us in. `known` are statuses that are no failure."""

    name: str
    url: str
    http: Http
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    async def ask(
        self, method: str, path: str, body: Mapping[str, object] | None = None, *, known: tuple[int, ...] = ()
    ) -> Any:  # noqa: ANN401 - each backend's own file reads what its service says
        """The answer's JSON, None for an empty one. Raises `HermesError`."""
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
    """The objects in the list at the end of that path; none where the answer has another shape."""
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def texts(found: list[Mapping[str, Any]], *names: str) -> list[str]:
    """The first of these fields that is a text and not empty, of each row that has one."""
    chosen = (next((row[name] for name in names if isinstance(row.get(name), str) and row[name]), "") for row in found)
    return [text for text in chosen if text]
