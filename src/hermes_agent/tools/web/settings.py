"""The settings of the web tools."""

from __future__ import annotations

from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import section, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Who is asked (section `web.search`)."""

    backend: Literal["auto", "ddgs", "searxng", "brave", "tavily", "exa", "firecrawl"] = setting(
        "auto",
        "auto: the first of tavily, brave, exa and firecrawl that has a key, searxng where `url` is set,"
        " otherwise ddgs.",
    )
    url: str = setting("", "Address of the server, e.g. http://127.0.0.1:8080 for searxng. Empty: the service's own.")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """The web (section `web`)."""

    search: SearchSettings = section(SearchSettings, "The service behind `web_search`.")
    blocked: tuple[str, ...] = setting(
        (), "Sites never to read, with their subdomains: `example.com`, `*.ads.example`."
    )
    private_hosts: tuple[str, ...] = setting(
        (),
        "Hosts in private networks that may be read all the same, as written in the address: `wiki.lan`,"
        " `127.0.0.1:8080`.",
    )
    timeout: int = setting(30, "Seconds that one page or search may take.", least=1, most=600)
    max_mb: int = setting(10, "Megabytes that one page may have.", least=1, most=200)
