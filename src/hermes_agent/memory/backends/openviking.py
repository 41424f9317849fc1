"""External memory OpenViking (https://www.mintlify.com/volcengine/OpenViking/api), a self-hosted context database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.memory.backend import Exchange, Needs, Service, rows, texts
from hermes_agent.store.facts.facts import Source

KEY = "OPENVIKING_API_KEY"
MOST = 5
FACTS = "facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenViking:
    """External memory on an OpenViking server: one agent per person, one server session for each session of ours
    and one for single facts. A commit turns the messages of a session into memories: at compaction and when the
    session ends."""

    service: Service
    _open: dict[str, str] = field(default_factory=dict)

    async def health(self) -> str:
        await self.service.ask("GET", "/health")
        return "answers"

    async def recall(self, query: str) -> Sequence[str]:
        found = await self.service.ask("POST", "/api/v1/search/find", {"query": query, "limit": MOST})
        kept = [*rows(found, "result", "memories"), *rows(found, "result", "resources")]
        return texts(kept, "abstract", "overview")[:MOST]

    async def remember(self, exchange: Exchange) -> None:
        await self._say(exchange.session, ("user", exchange.said), ("assistant", exchange.reply))

    async def add(self, fact: str, _source: Source, /) -> None:
        await self._say(FACTS, ("user", f"Remember: {fact}"))
        await self.ended(FACTS)

    async def leaving(self, session: str, text: str) -> None:  # noqa: ARG002 - a `Backend` is given it
        """Commits the session: its messages were sent before, one by one."""
        await self.ended(session)

    async def ended(self, session: str) -> None:
        if theirs := self._open.pop(session, ""):
            await self.service.ask("POST", f"/api/v1/sessions/{theirs}/commit", {})

    async def _say(self, session: str, *messages: tuple[str, str]) -> None:
        if session not in self._open:
            begun = await self.service.ask("POST", "/api/v1/sessions", {})
            result = begun.get("result") if isinstance(begun, dict) else None
            self._open[session] = str(result.get("session_id", "")) if isinstance(result, dict) else ""
        path = f"/api/v1/sessions/{self._open[session]}/messages"
        for role, content in messages:
            await self.service.ask("POST", path, {"role": role, "content": content})


def make(needs: Needs) -> OpenViking:
    """Creates the backend for the address of the settings, or a server on this machine."""
    key = needs.secret(KEY)
    headers = {"X-OpenViking-Agent": needs.space, **({"X-API-Key": key} if key else {})}
    url = needs.url or "http://localhost:1933"
    return OpenViking(service=Service(name="openviking", url=url, http=needs.http, headers=headers))
