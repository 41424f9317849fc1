"""What a search service is: how it is asked, and how its answer becomes results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError


class Unsearched(ToolError):
    """The service gave no results: what it said instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A request to a service; `json` makes it a POST with that body, `form` one with those fields."""

    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    json: Mapping[str, object] | None = None
    form: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One page that was found."""

    title: str
    url: str
    text: str = ""


class Backend(Protocol):
    """A search service.

    - `key_name` is the name of the key that it needs, empty where it needs none;
    - `address` is its own address, empty for one that everybody runs for themselves (`web.search.url`);
    - `asking` writes the request for `count` results; it is pure, and `address` has no slash at its end;
    - `results` reads the body of an answer with status 200, best first; it raises `Unsearched` where that is no answer
      of this service.
    """

    @property
    def key_name(self) -> str: ...

    @property
    def address(self) -> str: ...

    def asking(self, query: str, count: int, *, address: str, key: str) -> Asking: ...

    def results(self, body: bytes) -> list[Result]: ...


def rows_of(body: bytes, *path: str) -> list[Mapping[str, object]]:
    """The list of objects under these names of a JSON body. Raises `Unsearched` where there is none."""
    try:
        found = json.loads(body)
    except ValueError as error:
        raise Unsearched("The search service answered something that is no JSON.") from error
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, list):
        raise Unsearched(f"The search service answered without `{'.'.join(path)}`.")
    return [row for row in found if isinstance(row, dict)]


def made(rows: Iterable[Mapping[str, object]], *, text: str) -> list[Result]:
    """Results of rows with `title`, `url` and the words under the name `text`; a row without an address is left out."""
    return [
        Result(title=_words(row.get("title")), url=str(row["url"]), text=_words(row.get(text)))
        for row in rows
        if isinstance(row.get("url"), str) and row["url"]
    ]


def _words(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
