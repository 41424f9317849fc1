"""Web search: the `Backend` interface, choosing a service by the settings, and querying it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol
from urllib.parse import urlsplit

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.tools.settings import SearchSettings
from hermes_agent.tools.web.pages import HEADERS, within

BACKENDS: dict[str, str] = {
    "tavily": "hermes_agent.tools.web.search.tavily:BACKEND",
    "brave": "hermes_agent.tools.web.search.brave:BACKEND",
    "exa": "hermes_agent.tools.web.search.exa:BACKEND",
    "firecrawl": "hermes_agent.tools.web.search.firecrawl:BACKEND",
    "searxng": "hermes_agent.tools.web.search.searxng:BACKEND",
    "ddgs": "hermes_agent.tools.web.search.ddgs:BACKEND",
}
"""In the order in which `auto` looks for one that can be asked."""


class Unsearched(ToolError):
    """A web search service returned an error or an invalid answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """An HTTP request to a search service; `json` makes it a POST with that body, `form` one with form fields."""

    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    json: Mapping[str, object] | None = None
    form: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One web search result: title, address and text."""

    title: str
    url: str
    text: str = ""


class Backend(Protocol):
    """Interface to a web search service.

    - `key_name`: name of its API key, empty if it needs none;
    - `address`: its base URL, empty for a self-hosted one (`web.search.url`);
    - `asking` builds the request for `count` results; it is pure, and `address` has no trailing slash;
    - `results` parses the body of an answer with status 200, best first; it raises `Unsearched` if it is no answer of
      this service.
    """

    @property
    def key_name(self) -> str: ...

    @property
    def address(self) -> str: ...

    def asking(self, query: str, count: int, *, address: str, key: str) -> Asking: ...

    def results(self, body: bytes) -> list[Result]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonService:
    """A `Backend` with JSON answers: result rows under the path `rows`, each with its text under `text`.

    `ask` gives the rest of an `Asking` for a query, a number of results and the key.
    """

    address: str
    path: str
    ask: Callable[[str, int, str], Mapping[str, Any]]
    rows: tuple[str, ...]
    text: str
    key_name: str = ""

    def asking(self, query: str, count: int, *, address: str, key: str) -> Asking:
        return Asking(url=f"{address}{self.path}", **self.ask(query, count, key))

    def results(self, body: bytes) -> list[Result]:
        return made(rows_of(body, *self.rows), text=self.text)


def rows_of(body: bytes, *path: str) -> list[Mapping[str, object]]:
    """The list of objects at this path of a JSON body. Raises `Unsearched` if there is none."""
    try:
        found = json.loads(body)
    except ValueError as error:
        raise Unsearched("The search service answered something that is not JSON.") from error
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, list):
        raise Unsearched(f"The search service answered without `{'.'.join(path)}`.")
    return [row for row in found if isinstance(row, dict)]


def made(rows: Iterable[Mapping[str, object]], *, text: str) -> list[Result]:
    """Results from rows with `title`, `url` and the text under the name `text`; rows without a URL are dropped."""
    return [
        Result(title=_words(row.get("title")), url=str(row["url"]), text=_words(row.get(text)))
        for row in rows
        if isinstance(row.get("url"), str) and row["url"]
    ]


def _words(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


MOST_BYTES = 5 << 20
SETUP = "The owner can set one up: `web.search.backend` and its key."


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchChoice:
    """The web search service that the settings choose: its name in `BACKENDS`, address and key."""

    name: str
    backend: Backend
    address: str
    key: str


def choose(settings: SearchSettings, key_of: Callable[[str], str]) -> SearchChoice:
    """The configured service; with `auto` the first usable one. Raises `ToolError` with what is missing."""
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


async def search(http: Http, chosen: SearchChoice, query: str, count: int, *, seconds: float) -> Sequence[Result]:
    """Query the service for at most `count` results. Raises `ToolError` with its message."""
    asking = chosen.backend.asking(query, count, address=chosen.address, key=chosen.key)
    try:
        async with asyncio.timeout(seconds):
            body = await _body(http, chosen, asking)
        return (await asyncio.to_thread(chosen.backend.results, body))[:count]
    except TimeoutError as error:
        raise ToolError(f"{chosen.name} did not answer within {seconds:.0f} s.") from error
    except http.failures as error:
        where = urlsplit(asking.url).netloc
        raise ToolError(f"{chosen.name} ({where}) cannot be reached: {error}.") from error


async def _body(http: Http, chosen: SearchChoice, asking: Asking) -> bytes:
    headers = {"User-Agent": HEADERS["User-Agent"], **asking.headers}
    method = "GET" if asking.json is None and asking.form is None else "POST"
    asked = http.client(asking.url).stream(
        method, asking.url, params=dict(asking.params) or None, headers=headers, json=asking.json, data=asking.form
    )
    async with asked as response:
        body = await within(
            MOST_BYTES, response, Unsearched(f"{chosen.name} answered more than {MOST_BYTES >> 20} MB.")
        )
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
