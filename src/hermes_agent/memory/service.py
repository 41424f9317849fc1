"""JSON client of a memory service over HTTP; every failure becomes a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.http import Http

LONGEST_ANSWER = 1_000_000
SECONDS = 20.0
GOOD = range(200, 300)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service at its address with its authentication headers. Statuses in `known` are not failures."""

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
