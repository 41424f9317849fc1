"""Supermemory: https://supermemory.ai/docs/api-reference (v3 to add documents, v4 to search memories)."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.memory.backend import Exchange, Needs, ToldAlready
from hermes_agent.memory.service import Service, key_of, rows, texts
from hermes_agent.store.facts.facts import Source

KEY = "SUPERMEMORY_API_KEY"
MOST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Supermemory(ToldAlready):
    """A container tag for each person."""

    service: Service
    space: str

    async def health(self) -> str:
        await self.recall("health")
        return "answers"

    async def recall(self, query: str) -> Sequence[str]:
        wanted = {"q": query, "containerTag": self.space, "limit": MOST, "searchMode": "hybrid"}
        return texts(rows(await self.service.ask("POST", "/v4/search", wanted), "results"), "memory", "chunk")

    async def remember(self, exchange: Exchange) -> None:
        await self._keep(f"Person: {exchange.said}\n\nAgent: {exchange.reply}")

    async def add(self, fact: str, _source: Source, /) -> None:
        await self._keep(fact)

    async def leaving(self, session: str, text: str) -> None:
        await self._keep(f"Conversation {session}:\n{text}")

    async def _keep(self, text: str) -> None:
        await self.service.ask("POST", "/v3/documents", {"content": text, "containerTag": self.space})


def make(needs: Needs) -> Supermemory:
    """Raises `HermesError` without a key."""
    headers = {"Authorization": f"Bearer {key_of('supermemory', needs.secret(KEY), KEY)}"}
    url = needs.url or "https://api.supermemory.ai"
    service = Service(name="supermemory", url=url, http=needs.http, headers=headers)
    return Supermemory(service=service, space=needs.space)
