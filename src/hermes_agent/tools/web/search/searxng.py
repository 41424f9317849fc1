"""SearXNG, which people run themselves: https://docs.searxng.org/dev/search_api.html."""

from __future__ import annotations

from hermes_agent.tools.web.searching import Asking, Result, made, rows_of


class Searxng:
    """See `Backend`. Its `settings.yml` must name `json` under `search.formats`."""

    key_name = ""
    address = ""

    def asking(self, query: str, count: int, *, address: str, key: str) -> Asking:  # noqa: ARG002 - the Protocol's shape
        return Asking(url=f"{address}/search", params={"q": query, "format": "json"})

    def results(self, body: bytes) -> list[Result]:
        return made(rows_of(body, "results"), text="content")


BACKEND = Searxng()
