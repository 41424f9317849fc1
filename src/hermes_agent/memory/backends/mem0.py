"""Mem0: https://docs.mem0.ai/api-reference (v1 to add, v2 to search)."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.memory.backend import Exchange, Needs, ToldAlready
from hermes_agent.memory.service import Service, key_of, rows, texts
from hermes_agent.store.facts.facts import Source

KEY = "MEM0_API_KEY"
MOST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Mem0(ToldAlready):
    """A user of Mem0 for each person."""

    service: Service
    space: str

    async def health(self) -> str:
        await self.service.ask("GET", "/v1/ping/")
        return "answers"

    async def recall(self, query: str) -> Sequence[str]:
        wanted = {"query": query, "filters": {"user_id": self.space}, "top_k": MOST}
        found = await self.service.ask("POST", "/v2/memories/search/", wanted)
        return texts(rows(found) or rows(found, "results"), "memory")

    async def remember(self, exchange: Exchange) -> None:
        said = [{"role": "user", "content": exchange.said}, {"role": "assistant", "content": exchange.reply}]
        await self.service.ask("POST", "/v1/memories/", {"messages": said, "user_id": self.space})

    async def add(self, fact: str, _source: Source, /) -> None:
        said = [{"role": "user", "content": fact}]
        await self.service.ask("POST", "/v1/memories/", {"messages": said, "user_id": self.space, "infer": False})

    async def leaving(self, session: str, text: str) -> None:
        said = [{"role": "user", "content": text}]
        wanted = {"messages": said, "user_id": self.space, "metadata": {"session": session}}
        await self.service.ask("POST", "/v1/memories/", wanted)


def make(needs: Needs) -> Mem0:
    """Raises `HermesError` without a key."""
    headers = {"Authorization": f"Token {key_of('mem0', needs.secret(KEY), KEY)}"}
    url = needs.url or "https://api.mem0.ai"
    return Mem0(service=Service(name="mem0", url=url, http=needs.http, headers=headers), space=needs.space)
