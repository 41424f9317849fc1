"""Search backend for DuckDuckGo: parses its page for browsers without JavaScript (https://html.duckduckgo.com/html/)
with selectolax; no key."""

from __future__ import annotations

from urllib.parse import parse_qs, urljoin, urlsplit

from hermes_agent.host.late import libraries
from hermes_agent.tools.web.searching import Asking, Result, Unsearched

HOPS = ("/l/", "/y.js")
"""Addresses through which DuckDuckGo counts clicks: to a page, and to an advertisement."""


class Ddgs:
    """`Backend` for DuckDuckGo's HTML page."""

    key_name = ""
    address = "https://html.duckduckgo.com"

    def asking(self, query: str, count: int, *, address: str, key: str) -> Asking:  # noqa: ARG002 - the Protocol's shape
        return Asking(url=f"{address}/html/", form={"q": query}, headers={"Referer": f"{address}/"})

    def results(self, body: bytes) -> list[Result]:
        tree = libraries.lexbor.LexborHTMLParser(body.decode("utf-8", "replace"))
        if tree.css_first(".anomaly-modal__title, #challenge-form") is not None:
            raise Unsearched(
                "DuckDuckGo takes this machine for a robot and gave no results.",
                hint="Try later, or let the owner set up another service (`web.search`).",
            )
        found: list[Result] = []
        for node in tree.css(".result"):
            link, text = node.css_first("a.result__a"), node.css_first(".result__snippet")
            url = _target(link.attributes.get("href") or "") if link is not None else ""
            if url:
                words = " ".join(text.text().split()) if text is not None else ""
                found.append(Result(title=" ".join(link.text().split()), url=url, text=words))
        if not found and tree.css_first(".no-results, .results, #links") is None:
            raise Unsearched("DuckDuckGo answered with a page that is none of its results.")
        return found


def _target(href: str) -> str:
    """The final URL of a result link; empty for an advertisement."""
    parts = urlsplit(urljoin("https://duckduckgo.com/", href))
    if not (parts.hostname or "").endswith("duckduckgo.com"):
        return parts.geturl() if parts.scheme in ("http", "https") else ""
    named = parse_qs(parts.query).get("uddg", [""])[0] if parts.path == HOPS[0] else ""
    return named if named.startswith(("http://", "https://")) else ""


BACKEND = Ddgs()
