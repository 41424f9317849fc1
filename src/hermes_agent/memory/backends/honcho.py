"""Honcho: https://docs.honcho.dev (v3: workspaces hold peers, and sessions with their messages)."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.memory.backend import Exchange, Needs, ToldAlready
from hermes_agent.memory.service import Service, key_of, rows, texts
from hermes_agent.store.facts.facts import Source

KEY = "HONCHO_API_KEY"
MOST = 5
PERSON, AGENT, FACTS = "person", "agent", "facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Honcho(ToldAlready):
    """A workspace for each person, who is one peer in it; the agent is the other."""

    service: Service
    space: str

    async def health(self) -> str:
        await self.service.ask("POST", "/v3/workspaces", {"id": self.space}, known=(409,))
        return "answers"

    async def recall(self, query: str) -> Sequence[str]:
        path = f"/v3/workspaces/{self.space}/search"
        return texts(rows(await self.service.ask("POST", path, {"query": query, "limit": MOST})), "content")

    async def remember(self, exchange: Exchange) -> None:
        await self._keep(exchange.session, (PERSON, exchange.said), (AGENT, exchange.reply))

    async def add(self, fact: str, _source: Source, /) -> None:
        await self._keep(FACTS, (PERSON, fact))

    async def _keep(self, session: str, *said: tuple[str, str]) -> None:
        workspace = f"/v3/workspaces/{self.space}"
        await self.health()
        for peer in dict.fromkeys(peer for peer, _ in said):
            await self.service.ask("POST", f"{workspace}/peers", {"id": peer}, known=(409,))
        await self.service.ask("POST", f"{workspace}/sessions", {"id": session}, known=(409,))
        messages = [{"peer_id": peer, "content": content} for peer, content in said]
        await self.service.ask("POST", f"{workspace}/sessions/{session}/messages", {"messages": messages})


def make(needs: Needs) -> Honcho:
    """Raises `HermesError` without a key, but for a server of one's own."""
    key = needs.secret(KEY) if needs.url else key_of("honcho", needs.secret(KEY), KEY)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = needs.url or "https://api.honcho.dev"
    return Honcho(service=Service(name="honcho", url=url, http=needs.http, headers=headers), space=needs.space)
