"""Search backend for Brave Search: https://api-dashboard.search.brave.com/app/documentation/web-search."""

from __future__ import annotations

import html
import re
from dataclasses import replace

from hermes_agent.tools.web.searching import Asking, Result, made, rows_of

MOST = 20


class Brave:
    """`Backend` for Brave Search. Its result texts mark matches with `<strong>`."""

    key_name = "BRAVE_API_KEY"
    address = "https://api.search.brave.com"

    def asking(self, query: str, count: int, *, address: str, key: str) -> Asking:
        return Asking(
            url=f"{address}/res/v1/web/search",
            params={"q": query, "count": str(min(count, MOST))},
            headers={"X-Subscription-Token": key, "Accept": "application/json"},
        )

    def results(self, body: bytes) -> list[Result]:
        if b'"web"' not in body and b'"type"' in body:
            return []  # nothing found: the part with pages is left out
        found = made(rows_of(body, "web", "results"), text="description")
        return [replace(each, title=_plain(each.title), text=_plain(each.text)) for each in found]


def _plain(text: str) -> str:
    return html.unescape(re.sub(r"</?strong>", "", text))


BACKEND = Brave()
