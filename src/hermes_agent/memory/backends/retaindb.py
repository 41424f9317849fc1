"""RetainDB: https://www.retaindb.com/docs/api/memory (v1; the project's own server needs no key)."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.memory.backend import Exchange, Needs, ToldAlready
from hermes_agent.memory.service import Service, key_of, rows, texts
from hermes_agent.store.facts.facts import Source

KEY = "RETAINDB_API_KEY"
MOST = 5
PROJECT = "hermes"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainDB(ToldAlready):
    """A user of one project for each person."""

    service: Service
    space: str

    async def health(self) -> str:
        await self.recall("health")
        return "answers"

    async def recall(self, query: str) -> Sequence[str]:
        wanted = {"query": query, "include_pending": True, "top_k": MOST}
        found = rows(await self._ask("/v1/memory/search", wanted), "results")
        # The service wraps each memory beside its score.
        return texts([row["memory"] if isinstance(row.get("memory"), dict) else row for row in found], "content")

    async def remember(self, exchange: Exchange) -> None:
        await self._ingest(exchange.session, ("user", exchange.said), ("assistant", exchange.reply))

    async def add(self, fact: str, _source: Source, /) -> None:
        await self._ask("/v1/memory", {"content": fact, "memory_type": "factual", "write_mode": "async"})

    async def leaving(self, session: str, text: str) -> None:
        await self._ingest(session, ("user", text))

    async def _ingest(self, session: str, *said: tuple[str, str]) -> None:
        messages = [{"role": role, "content": content} for role, content in said]
        await self._ask("/v1/memory/ingest/session", {"session_id": session, "messages": messages})

    async def _ask(self, path: str, body: dict[str, object]) -> object:
        answer: object = await self.service.ask("POST", path, {"project": PROJECT, "user_id": self.space, **body})
        return answer


def make(needs: Needs) -> RetainDB:
    """Raises `HermesError` without a key, but for a server of one's own."""
    key = needs.secret(KEY) if needs.url else key_of("retaindb", needs.secret(KEY), KEY)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = needs.url or "https://api.retaindb.com"
    return RetainDB(service=Service(name="retaindb", url=url, http=needs.http, headers=headers), space=needs.space)
