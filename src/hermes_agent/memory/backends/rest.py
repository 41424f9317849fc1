"""Memory services over HTTP, each a record of facts: its address, its key, and the requests it understands.

The requests follow each service's public reference: https://docs.honcho.dev (v3), https://docs.mem0.ai/api-reference
(v1 adds, v2 searches), https://hindsight.vectorize.io/developer/api, https://supermemory.ai/docs/api-reference (v3
adds, v4 searches), https://www.retaindb.com/docs/api/memory (v1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.memory.backend import Exchange, Needs, Service, rows, texts
from hermes_agent.store.facts.facts import Source

MOST = 5
"""Texts of one recall."""
PROJECT = "hermes"
"""The project of RetainDB that holds every person."""
WHO = {"user": "Person", "assistant": "Agent"}

Said = tuple[tuple[str, str], ...]
"""Role (`user`, `assistant`) and text of each message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One HTTP request to a memory service. A status among `known` is no failure."""

    path: str
    body: Mapping[str, object] | None = None
    method: str = "POST"
    known: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts of one memory service: address, key, and requests. `space` separates people; `keep` gets space, session
    and messages.

    `key_for` says which servers need a key: `all`, `hosted` (not a self-hosted one) or `none`. `takes_leaving`:
    the text that a compaction removes is sent too, because the service does not keep each message. Without
    `health` a recall shows that the service answers.
    """

    name: str
    url: str
    recall: Callable[[str, str], Call]
    found: Callable[[object], Sequence[str]]
    keep: Callable[[str, str, Said], Sequence[Call]]
    add: Callable[[str, str], Sequence[Call]]
    health: Callable[[str], Call] | None = None
    scheme: str = "Bearer"
    key_for: str = "all"
    takes_leaving: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Implements `Backend` for the HTTP service that `facts` describes."""

    facts: Facts
    service: Service
    space: str

    async def health(self) -> str:
        if self.facts.health is None:
            await self.recall("health")
        else:
            await self._send([self.facts.health(self.space)])
        return "answers"

    async def recall(self, query: str) -> Sequence[str]:
        return self.facts.found(await self._send([self.facts.recall(self.space, query)]))[:MOST]

    async def remember(self, exchange: Exchange) -> None:
        said = (("user", exchange.said), ("assistant", exchange.reply))
        await self._send(self.facts.keep(self.space, exchange.session, said))

    async def add(self, fact: str, _source: Source, /) -> None:
        await self._send(self.facts.add(self.space, fact))

    async def leaving(self, session: str, text: str) -> None:
        if self.facts.takes_leaving:
            await self._send(self.facts.keep(self.space, session, (("user", text),)))

    async def ended(self, session: str) -> None:
        """Does nothing: each exchange was sent at once."""

    async def _send(self, calls: Sequence[Call]) -> object:
        answer: object = None
        for call in calls:
            answer = await self.service.ask(call.method, call.path, call.body, known=call.known)
        return answer


def _text(said: Said) -> str:
    return "\n\n".join(f"{WHO[role]}: {text}" for role, text in said) if len(said) > 1 else said[0][1]


def _messages(said: Said) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in said]


def _mem0(space: str, messages: Said, **more: object) -> Sequence[Call]:
    return [Call(path="/v1/memories/", body={"messages": _messages(messages), "user_id": space, **more})]


MEM0 = Facts(
    name="mem0",
    url="https://api.mem0.ai",
    scheme="Token",
    health=lambda _: Call(method="GET", path="/v1/ping/"),
    recall=lambda space, query: Call(
        path="/v2/memories/search/", body={"query": query, "filters": {"user_id": space}, "top_k": MOST}
    ),
    found=lambda found: texts(rows(found) or rows(found, "results"), "memory"),
    keep=lambda space, session, said: _mem0(space, said, metadata={"session": session}),
    add=lambda space, fact: _mem0(space, (("user", fact),), infer=False),
)


def _hindsight(space: str, content: str, context: str) -> Sequence[Call]:
    items = [{"content": content, "context": context}]
    return [Call(path=f"/v1/default/banks/{space}/memories", body={"items": items, "async": True})]


HINDSIGHT = Facts(
    name="hindsight",
    url="http://localhost:8888",
    key_for="none",
    health=lambda _: Call(method="GET", path="/health"),
    recall=lambda space, query: Call(path=f"/v1/default/banks/{space}/memories/recall", body={"query": query}),
    found=lambda found: texts(rows(found, "results"), "text"),
    keep=lambda space, session, said: _hindsight(space, _text(said), f"conversation {session}"),
    add=lambda space, fact: _hindsight(space, fact, "fact"),
)


def _supermemory(space: str, content: str) -> Sequence[Call]:
    return [Call(path="/v3/documents", body={"content": content, "containerTag": space})]


SUPERMEMORY = Facts(
    name="supermemory",
    url="https://api.supermemory.ai",
    recall=lambda space, query: Call(
        path="/v4/search", body={"q": query, "containerTag": space, "limit": MOST, "searchMode": "hybrid"}
    ),
    found=lambda found: texts(rows(found, "results"), "memory", "chunk"),
    keep=lambda space, session, said: _supermemory(space, f"Conversation {session}:\n{_text(said)}"),
    add=_supermemory,
)


def _honcho(space: str, session: str, said: Said) -> Sequence[Call]:
    """The workspace, its peers and the session are made first; 409 says that they are there."""
    workspace, peers = f"/v3/workspaces/{space}", {"user": "person", "assistant": "agent"}
    messages = [{"peer_id": peers[role], "content": text} for role, text in said]
    return [
        _workspace(space),
        *(Call(path=f"{workspace}/peers", body={"id": peers[role]}, known=(409,)) for role in dict(said)),
        Call(path=f"{workspace}/sessions", body={"id": session}, known=(409,)),
        Call(path=f"{workspace}/sessions/{session}/messages", body={"messages": messages}),
    ]


def _workspace(space: str) -> Call:
    return Call(path="/v3/workspaces", body={"id": space}, known=(409,))


HONCHO = Facts(
    name="honcho",
    url="https://api.honcho.dev",
    key_for="hosted",
    takes_leaving=False,
    health=_workspace,
    recall=lambda space, query: Call(path=f"/v3/workspaces/{space}/search", body={"query": query, "limit": MOST}),
    found=lambda found: texts(rows(found), "content"),
    keep=_honcho,
    add=lambda space, fact: _honcho(space, "facts", (("user", fact),)),
)


def _retaindb(space: str, path: str, **body: object) -> Call:
    return Call(path=path, body={"project": PROJECT, "user_id": space, **body})


RETAINDB = Facts(
    name="retaindb",
    url="https://api.retaindb.com",
    key_for="hosted",
    recall=lambda space, query: _retaindb(space, "/v1/memory/search", query=query, include_pending=True, top_k=MOST),
    # The service wraps each memory beside its score.
    found=lambda found: texts(
        [row["memory"] if isinstance(row.get("memory"), dict) else row for row in rows(found, "results")], "content"
    ),
    keep=lambda space, session, said: [
        _retaindb(space, "/v1/memory/ingest/session", session_id=session, messages=_messages(said))
    ],
    add=lambda space, fact: [_retaindb(space, "/v1/memory", content=fact, memory_type="factual", write_mode="async")],
)


def _make(facts: Facts, needs: Needs) -> Rest:
    """At the address of the settings, else the service's own. Raises `HermesError` where a key is missing."""
    variable = f"{facts.name.upper()}_API_KEY"
    key = needs.secret(variable)
    if not key and (facts.key_for == "all" or (facts.key_for == "hosted" and not needs.url)):
        raise HermesError(f"{facts.name} needs a key: `hermes config set {variable} ...`.")
    headers = {"Authorization": f"{facts.scheme} {key}"} if key else {}
    service = Service(name=facts.name, url=needs.url or facts.url, http=needs.http, headers=headers)
    return Rest(facts=facts, service=service, space=needs.space)


honcho, mem0, hindsight, supermemory, retaindb = (
    partial(_make, facts) for facts in (HONCHO, MEM0, HINDSIGHT, SUPERMEMORY, RETAINDB)
)
