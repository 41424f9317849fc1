"""Search backend for Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search."""

from __future__ import annotations

from hermes_agent.tools.web.searching import JsonService

BACKEND = JsonService(
    key_name="TAVILY_API_KEY",
    address="https://api.tavily.com",
    path="/search",
    ask=lambda query, count, key: {
        "headers": {"Authorization": f"Bearer {key}"},
        "json": {"query": query, "max_results": count, "search_depth": "basic"},
    },
    rows=("results",),
    text="content",
)
