"""Who `web_search` asks, each in a file of its own: what is there, by name."""

from __future__ import annotations

BACKENDS: dict[str, str] = {
    "tavily": "hermes_agent.tools.web.search.tavily:BACKEND",
    "brave": "hermes_agent.tools.web.search.brave:BACKEND",
    "exa": "hermes_agent.tools.web.search.exa:BACKEND",
    "firecrawl": "hermes_agent.tools.web.search.firecrawl:BACKEND",
    "searxng": "hermes_agent.tools.web.search.searxng:BACKEND",
    "ddgs": "hermes_agent.tools.web.search.ddgs:BACKEND",
}
"""In the order in which `auto` looks for one that can be asked."""
