"""Exa: https://docs.exa.ai/reference/search."""

from __future__ import annotations

from hermes_agent.tools.web.searching import Asking, Result, made, rows_of

TEXT_CHARS = 500


class Exa:
    """See `Backend`."""

    key_name = "EXA_API_KEY"
    address = "https://api.exa.ai"

    def asking(self, query: str, count: int, *, address: str, key: str) -> Asking:
        body = {"query": query, "numResults": count, "contents": {"text": {"maxCharacters": TEXT_CHARS}}}
        return Asking(url=f"{address}/search", headers={"x-api-key": key}, json=body)

    def results(self, body: bytes) -> list[Result]:
        return made(rows_of(body, "results"), text="text")


BACKEND = Exa()
