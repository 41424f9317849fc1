"""Search backend for Firecrawl: https://docs.firecrawl.dev/api-reference/endpoint/search (version 2)."""

from __future__ import annotations

from hermes_agent.tools.web.searching import JsonService

BACKEND = JsonService(
    key_name="FIRECRAWL_API_KEY",
    address="https://api.firecrawl.dev",
    path="/v2/search",
    ask=lambda query, count, key: {
        "headers": {"Authorization": f"Bearer {key}"},
        "json": {"query": query, "limit": count},
    },
    rows=("data", "web"),
    text="description",
)
