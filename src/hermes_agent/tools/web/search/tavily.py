"""Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search."""

from __future__ import annotations

from hermes_agent.tools.web.searching import Asking, Result, made, rows_of


class Tavily:
    """See `Backend`."""

    key_name = "TAVILY_API_KEY"
    address = "https://api.tavily.com"

    def asking(self, query: str, count: int, *, address: str, key: str) -> Asking:
        body = {"query": query, "max_results": count, "search_depth": "basic"}
        return Asking(url=f"{address}/search", headers={"Authorization": f"Bearer {key}"}, json=body)

    def results(self, body: bytes) -> list[Result]:
        return made(rows_of(body, "results"), text="content")


BACKEND = Tavily()
