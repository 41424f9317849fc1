"""Firecrawl: https://docs.firecrawl.dev/api-reference/endpoint/search (version 2)."""

from __future__ import annotations

from hermes_agent.tools.web.searching import Asking, Result, made, rows_of


class Firecrawl:
    """See `Backend`."""

    key_name = "FIRECRAWL_API_KEY"
    address = "https://api.firecrawl.dev"

    def asking(self, query: str, count: int, *, address: str, key: str) -> Asking:
        body = {"query": query, "limit": count}
        return Asking(url=f"{address}/v2/search", headers={"Authorization": f"Bearer {key}"}, json=body)

    def results(self, body: bytes) -> list[Result]:
        return made(rows_of(body, "data", "web"), text="description")


BACKEND = Firecrawl()
