"""Asks the search service that the settings choose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.tools.settings import SearchSettings
from hermes_agent.tools.web.backend import Asking, Backend, Result, Unsearched
from hermes_agent.tools.web.pages import HEADERS
from hermes_agent.tools.web.search import BACKENDS

MOST_BYTES = 5 << 20
SETUP = "The owner can set one up: `web.search.backend` and its key."


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchChoice:
    """The service to ask: its name in `BACKENDS`, address and key."""

    name: str
    backend: Backend
    address: str
    key: str


def choose(settings: SearchSettings, key_of: Callable[[str], str]) -> SearchChoice:
    """The service of the settings; with `auto` the first that can be asked. Raises `ToolError` with what is missing."""
    names = list(BACKENDS) if settings.backend == "auto" else [settings.backend]
    for name in names:
        backend: Backend = late(BACKENDS[name])
        address = (settings.url or backend.address).rstrip("/")
        key = key_of(backend.key_name) if backend.key_name else ""
        # Where nobody is named, an address of one's own is that of the service which has none.
        is_elsewhere = settings.backend == "auto" and settings.url and backend.address
        if address and (key or not backend.key_name) and not is_elsewhere:
            return SearchChoice(name=name, backend=backend, address=address, key=key)
    (name,) = names
    lacks = f"the key {backend.key_name}" if backend.key_name else "its address (`web.search.url`)"
    raise ToolError(f"Web search by {name} needs {lacks}.", hint="Ask the owner to set it.")


class Searching:
    """Searches by `http` within `seconds`."""

    def __init__(self, http: Http, *, seconds: float) -> None:
        self._http = http
        self._seconds = seconds

    async def search(self, chosen: SearchChoice, query: str, count: int) -> Sequence[Result]:
        """At most `count` results. Raises `ToolError` with what the service said."""
        asking = chosen.backend.asking(query, count, address=chosen.address, key=chosen.key)
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._body(chosen, asking)
            return (await asyncio.to_thread(chosen.backend.results, body))[:count]
        except TimeoutError as error:
            raise ToolError(f"{chosen.name} did not answer within {self._seconds:.0f} s.") from error
        except self._http.failures as error:
            where = urlsplit(asking.url).netloc
            raise ToolError(f"{chosen.name} ({where}) cannot be reached: {error}.") from error

    async def _body(self, chosen: SearchChoice, asking: Asking) -> bytes:
        client = self._http.client(asking.url)
        headers = {"User-Agent": HEADERS["User-Agent"], **asking.headers}
        method = "GET" if asking.json is None and asking.form is None else "POST"
        asked = client.stream(
            method, asking.url, params=dict(asking.params) or None, headers=headers, json=asking.json, data=asking.form
        )
        async with asked as response:
            parts: list[bytes] = []
            async for chunk in response.aiter_bytes():
                parts.append(chunk)
                if sum(map(len, parts)) > MOST_BYTES:
                    raise Unsearched(f"{chosen.name} answered more than {MOST_BYTES >> 20} MB.")
            body = b"".join(parts)
            if response.status_code != 200:
                raise _failure(chosen, response.status_code, body)
            return body


def _failure(chosen: SearchChoice, status: int, body: bytes) -> ToolError:
    said = " ".join(body[:300].decode("utf-8", "replace").split())
    match status:
        case 401 | 403:
            key = f"the key {chosen.backend.key_name}" if chosen.backend.key_name else "this machine"
            return Unsearched(f"{chosen.name} refused {key} ({status}).", hint=SETUP)
        case 402 | 429:
            return Unsearched(
                f"{chosen.name} allows no more searches for now ({status}).", hint="Go on without, or wait."
            )
        case _:
            return Unsearched(f"{chosen.name} answered {status}: {said[:200]}")
