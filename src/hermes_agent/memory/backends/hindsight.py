"""Hindsight: https://hindsight.vectorize.io/developer/api (a server of one's own needs no key)."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.memory.backend import Exchange, Needs, ToldAlready
from hermes_agent.memory.service import Service, rows, texts
from hermes_agent.store.facts.facts import Source

KEY = "HINDSIGHT_API_KEY"
MOST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindsight(ToldAlready):
    """A bank for each person; it is made by the first thing that is kept in it."""

    service: Service
    space: str

    async def health(self) -> str:
        await self.service.ask("GET", "/health")
        return "answers"

    async def recall(self, query: str) -> Sequence[str]:
        path = f"/v1/default/banks/{self.space}/memories/recall"
        return texts(rows(await self.service.ask("POST", path, {"query": query}), "results"), "text")[:MOST]

    async def remember(self, exchange: Exchange) -> None:
        await self._keep(f"Person: {exchange.said}\n\nAgent: {exchange.reply}", "conversation")

    async def add(self, fact: str, _source: Source, /) -> None:
        await self._keep(fact, "fact")

    async def leaving(self, session: str, text: str) -> None:
        await self._keep(text, f"conversation {session}, before it was shortened")

    async def _keep(self, content: str, context: str) -> None:
        items = [{"content": content, "context": context}]
        await self.service.ask("POST", f"/v1/default/banks/{self.space}/memories", {"items": items, "async": True})


def make(needs: Needs) -> Hindsight:
    """At the address of the settings, or on this machine."""
    key = needs.secret(KEY)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = needs.url or "http://localhost:8888"
    return Hindsight(service=Service(name="hindsight", url=url, http=needs.http, headers=headers), space=needs.space)
