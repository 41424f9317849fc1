"""OpenViking: https://www.mintlify.com/volcengine/OpenViking/api (a context database of one's own)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hermes_agent.memory.backend import Exchange, Needs
from hermes_agent.memory.service import Service, rows, texts

KEY = "OPENVIKING_API_KEY"
MOST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenViking:
    """An agent of the server for each person. What is said becomes memories when its session is committed."""

    service: Service

    async def health(self) -> str:
        await self.service.ask("GET", "/health")
        return "answers"

    async def recall(self, query: str) -> Sequence[str]:
        found = await self.service.ask("POST", "/api/v1/search/find", {"query": query, "limit": MOST})
        kept = [*rows(found, "result", "memories"), *rows(found, "result", "resources")]
        return texts(kept, "abstract", "overview")[:MOST]

    async def remember(self, exchange: Exchange) -> None:
        await self._keep(("user", exchange.said), ("assistant", exchange.reply))

    async def add(self, fact: str) -> None:
        await self._keep(("user", f"Remember: {fact}"))

    async def _keep(self, *messages: tuple[str, str]) -> None:
        begun = await self.service.ask("POST", "/api/v1/sessions", {})
        result = begun.get("result") if isinstance(begun, dict) else None
        session = str(result.get("session_id", "")) if isinstance(result, dict) else ""
        for role, content in messages:
            await self.service.ask("POST", f"/api/v1/sessions/{session}/messages", {"role": role, "content": content})
        await self.service.ask("POST", f"/api/v1/sessions/{session}/commit", {})


def make(needs: Needs) -> OpenViking:
    """At the address of the settings, or on this machine."""
    key = needs.secret(KEY)
    headers = {"X-OpenViking-Agent": needs.space, **({"X-API-Key": key} if key else {})}
    url = needs.url or "http://localhost:1933"
    return OpenViking(service=Service(name="openviking", url=url, http=needs.http, headers=headers))
