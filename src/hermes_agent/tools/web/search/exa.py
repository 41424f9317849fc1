"""Search backend for Exa: https://docs.exa.ai/reference/search."""

from __future__ import annotations

from hermes_agent.tools.web.searching import JsonService

TEXT_CHARS = 500
BACKEND = JsonService(
    key_name="EXA_API_KEY",
    address="https://api.exa.ai",
    path="/search",
    ask=lambda query, count, key: {
        "headers": {"x-api-key": key},
        "json": {"query": query, "numResults": count, "contents": {"text": {"maxCharacters": TEXT_CHARS}}},
    },
    rows=("results",),
    text="text",
)
