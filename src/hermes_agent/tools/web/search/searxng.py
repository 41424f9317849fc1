"""Search backend for a self-hosted SearXNG: https://docs.searxng.org/dev/search_api.html. Its `settings.yml` must
list `json` under `search.formats`."""

from __future__ import annotations

from hermes_agent.tools.web.searching import JsonService

BACKEND = JsonService(
    address="",
    path="/search",
    ask=lambda query, _count, _key: {"params": {"q": query, "format": "json"}},
    rows=("results",),
    text="content",
)
