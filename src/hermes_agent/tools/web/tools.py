"""The toolset `web` as the model sees it: web_search and web_extract."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

from msgspec import Meta

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.host.http import Http
from hermes_agent.host.late import Needs
from hermes_agent.host.secrets import Secrets
from hermes_agent.scanner.scan import judged
from hermes_agent.tools.files.content import storable
from hermes_agent.tools.schema import said
from hermes_agent.tools.settings import WebSettings
from hermes_agent.tools.web import pages, searching
from hermes_agent.tools.web.reading import read_apart

NEEDS = (Capability.NET,)
SHOWN_CHARS = 600


class WebTools:
    """The toolset `web`; `key_of` looks up an API key by name."""

    def __init__(self, *, http: Http, settings: WebSettings, key_of: Callable[[str], str]) -> None:
        self._http = http
        self._settings = settings
        self._key_of = key_of

    @tool(effect=Effect.READS, needs=NEEDS, origin=Origin.WEB)
    async def web_search(
        self, query: str, context: CallContext, count: Annotated[int, Meta(ge=1, le=20)] = 5
    ) -> Answer:
        """Search the web. Read the pages that matter with web_extract."""
        seconds = _within(self._settings.timeout, context)
        chosen = searching.choose(self._settings.search, self._key_of)
        found = await searching.search(self._http, chosen, query, count, seconds=seconds)
        rows = [
            f"{number}. {each.title or each.url}\n   {each.url}"
            + (f"\n   {each.text[:SHOWN_CHARS]}" if each.text else "")
            for number, each in enumerate(found, 1)
        ]
        return await asyncio.to_thread(_of_web, "\n".join(rows) if rows else "Nothing found. Try other words.")

    @tool(effect=Effect.READS, needs=NEEDS, origin=Origin.WEB)
    async def web_extract(self, url: str, context: CallContext) -> Answer:
        """Read a web page or PDF as Markdown."""
        settings = self._settings
        addresses = pages.Addresses(blocked=settings.blocked, private=settings.private_hosts)
        fetching = pages.Pages(self._http, addresses, seconds=settings.timeout, most=settings.max_mb << 20)
        page = await fetching.fetch(url.strip(), _within(settings.timeout, context))
        return await asyncio.to_thread(_of_web, await read_apart(page))


def _of_web(text: str) -> Answer:
    """Web text as an answer, preceded by the scanner's warning if there is one."""
    text, told = judged(storable(text))
    answer = said(text, Origin.WEB)
    return replace(answer, parts=(Text(text=told, origin=Origin.RUNTIME), *answer.parts)) if told else answer


def _within(seconds: float, context: CallContext) -> float:
    """The time limit of a request: the setting, or what the run has left."""
    left = context.seconds_left()
    return seconds if left is None else max(0.1, min(seconds, left))


def web_tools(needs: Needs) -> WebTools:
    """Factory of the toolset `web`."""
    return WebTools(http=needs.get(Http), settings=needs.get(WebSettings), key_of=needs.get(Secrets).get)
