"""What a memory outside the notes is: recalls what fits a question, and is told what was said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hermes_agent.core.tool import CallContext
from hermes_agent.host.http import Http


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A message that was answered: the session's id, what the person said, the reply."""

    session: str
    said: str
    reply: str


class Backend(Protocol):
    """One person's memory.

    - `recall` gives at most a few short texts, the best first; none where nothing fits;
    - `remember` keeps an exchange, `add` one fact;
    - `health` is a few words on a memory that answers;
    - all raise `HermesError`, with a sentence that names the backend, and may be cancelled at any time.
    """

    async def health(self) -> str: ...

    async def recall(self, query: str) -> Sequence[str]: ...

    async def remember(self, exchange: Exchange) -> None: ...

    async def add(self, fact: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a backend is made of: the clients, the value of a secret by its name (empty: there is none), the address
    (empty: the service's own), the `space` that keeps one person's memory apart, the folder for what is kept here."""

    http: Http
    secret: Callable[[str], str]
    url: str
    space: str
    folder: Path


BackendFor = Callable[[CallContext], Awaitable[Backend]]
"""The memory of whoever speaks in a call. Raises `ToolError` where that is nobody, or others read along."""
