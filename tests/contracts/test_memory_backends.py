"""Every memory backend keeps its contract, those over HTTP against a double written from the service's public pages,
`byterover` against a program that speaks as its pages say."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.host.http import Http
from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.inbound.message import Request, Response
from hermes_agent.host.late import late
from hermes_agent.memory.backend import Backend, Exchange, Needs
from hermes_agent.memory.backends import BACKENDS
from hermes_agent.memory.settings import Provider
from hermes_agent.store.database import open_store
from hermes_agent.testing.clock import FakeClock
from tests.memory.backends.brv import installed
from tests.memory.harness import TOLD

LOCAL = {"holographic", "byterover"}
REMOTE = sorted(set(BACKENDS) - LOCAL)
SAID = Exchange(session="s1", said="I like tea.", reply="Noted: tea.")


@dataclass
class Double:
    """A service that keeps whole texts and finds those that share a word with the question."""

    answers: Callable[["Double", str, str, dict], object]
    header: str
    kept: list[str] = field(default_factory=list)
    seen: list[tuple[str, str]] = field(default_factory=list)
    broken: Response | None = None

    async def handle(self, request: Request) -> Response:
        self.seen.append((request.method, request.path))
        if self.broken is not None:
            return self.broken
        if self.header and "secret-key" not in request.headers.get(self.header, ""):
            return Response(status=401, body=b"who are you?")
        body = json.loads(request.body or b"{}")
        found = self.answers(self, request.method, request.path, body)
        if found is None:
            return Response(status=404, body=f"no such route: {request.method} {request.path}".encode())
        return Response(headers={"content-type": "application/json"}, body=json.dumps(found).encode())

    def find(self, query: str) -> list[str]:
        return [text for text in self.kept if set(query.lower().split()) & set(text.lower().replace(".", "").split())]


def mem0(double: Double, method: str, path: str, body: dict) -> object:
    match method, path:
        case "GET", "/v1/ping/":
            return {"status": "ok"}
        case "POST", "/v1/memories/":
            assert body["user_id"] == "hermes"
            double.kept += [message["content"] for message in body["messages"]]
            return [{"event": "ADD"}]
        case "POST", "/v2/memories/search/":
            assert body["filters"] == {"user_id": "hermes"}
            return [{"id": "1", "memory": text, "score": 0.9} for text in double.find(body["query"])]
    return None


def supermemory(double: Double, method: str, path: str, body: dict) -> object:
    assert body["containerTag"] == "hermes"
    match method, path:
        case "POST", "/v3/documents":
            double.kept.append(body["content"])
            return {"id": "abc", "status": "queued"}
        case "POST", "/v4/search":
            return {"results": [{"id": "1", "memory": text, "similarity": 0.9} for text in double.find(body["q"])]}
    return None


def hindsight(double: Double, method: str, path: str, body: dict) -> object:
    match method, path:
        case "GET", "/health":
            return {"status": "healthy"}
        case "POST", "/v1/default/banks/hermes/memories":
            double.kept += [item["content"] for item in body["items"]]
            return {"success": True, "async": True}
        case "POST", "/v1/default/banks/hermes/memories/recall":
            return {"results": [{"id": "1", "text": text, "type": "world"} for text in double.find(body["query"])]}
    return None


def openviking(double: Double, method: str, path: str, body: dict) -> object:
    match method, path:
        case "GET", "/health":
            return {"status": "ok"}
        case "POST", "/api/v1/sessions":
            return {"status": "ok", "result": {"session_id": "v1"}}
        case "POST", "/api/v1/sessions/v1/messages":
            double.kept.append(body["content"])
            return {"status": "ok", "result": {"message_count": 1}}
        case "POST", "/api/v1/sessions/v1/commit":
            return {"status": "ok", "result": {"status": "accepted"}}
        case "POST", "/api/v1/search/find":
            memories = [{"uri": "viking://1", "abstract": text, "score": 0.9} for text in double.find(body["query"])]
            return {"status": "ok", "result": {"memories": memories, "resources": [], "skills": []}}
    return None


def honcho(double: Double, method: str, path: str, body: dict) -> object:
    match method, path:
        case "POST", "/v3/workspaces" | "/v3/workspaces/hermes/peers" | "/v3/workspaces/hermes/sessions":
            return {"id": body["id"]}
        case "POST", "/v3/workspaces/hermes/sessions/s1/messages" | "/v3/workspaces/hermes/sessions/facts/messages":
            double.kept += [message["content"] for message in body["messages"]]
            return [{"id": "m"} for _ in body["messages"]]
        case "POST", "/v3/workspaces/hermes/search":
            return [{"id": "m", "content": text, "peer_id": "person"} for text in double.find(body["query"])]
    return None


def retaindb(double: Double, method: str, path: str, body: dict) -> object:
    assert (body["project"], body["user_id"]) == ("hermes", "hermes")
    match method, path:
        case "POST", "/v1/memory":
            assert body["memory_type"] == "factual"
            double.kept.append(body["content"])
            return {"success": True, "mode": "async", "trace_id": "trc_1"}
        case "POST", "/v1/memory/ingest/session":
            assert body["session_id"]
            double.kept += [message["content"] for message in body["messages"]]
            return {"success": True, "job_id": "j", "trace_id": "trc_1"}
        case "POST", "/v1/memory/search":
            found = [{"memory": {"id": "1", "content": text}, "score": 0.8} for text in double.find(body["query"])]
            return {"results": found, "count": len(found), "trace_id": "trc_1"}
    return None


DOUBLES = {
    "mem0": (mem0, "authorization"),
    "supermemory": (supermemory, "authorization"),
    "hindsight": (hindsight, "authorization"),
    "openviking": (openviking, "x-api-key"),
    "honcho": (honcho, "authorization"),
    "retaindb": (retaindb, "authorization"),
}


@asynccontextmanager
async def made(
    name: str, folder: Path, key: str = "secret-key", url: str | None = None
) -> AsyncIterator[tuple[Backend, Double]]:
    answers, header = DOUBLES.get(name, (lambda *_: None, ""))
    double, http = Double(answers=answers, header=header), Http()
    store = await open_store(folder / "hermes.db")
    async with serve(double.handle) as server:
        needs = Needs(
            http=http,
            secret=lambda _: key,
            url=server.url if url is None else url,
            space="hermes",
            store=store,
            clock=FakeClock(),
            folder=folder,
            environment=installed(folder),
        )
        try:
            yield late(BACKENDS[name])(needs), double
        finally:
            await http.close()
            await store.close()


def test_the_settings_name_each_backend_and_no_other():
    assert set(get_args(Provider)) == {"none", *BACKENDS}


@pytest.mark.parametrize("name", sorted(BACKENDS))
async def test_what_was_added_is_recalled_and_nothing_else(name: str, tmp_path: Path):
    async with made(name, tmp_path) as (backend, _):
        await backend.add("The cat is called Mina.", TOLD)
        await backend.add("Deploys go through staging.", TOLD)

        found = await backend.recall("cat called")

        assert len(found) == 1
        assert "Mina" in found[0]
        assert await backend.recall("zebra") in ([], ())


@pytest.mark.parametrize("name", sorted(BACKENDS))
async def test_a_backend_that_answers_is_well(name: str, tmp_path: Path):
    async with made(name, tmp_path) as (backend, _):
        assert await backend.health()


@pytest.mark.parametrize("name", REMOTE)
async def test_an_exchange_is_kept_whole(name: str, tmp_path: Path):
    async with made(name, tmp_path) as (backend, double):
        await backend.remember(SAID)

        assert SAID.said in "\n".join(double.kept)
        assert SAID.reply in "\n".join(double.kept)


TAKES_IN = ("mem0", "hindsight", "supermemory", "retaindb", "byterover")
"""Backends that are told again what leaves the window; the others have it message by message, or keep facts alone."""


@pytest.mark.parametrize("name", sorted(BACKENDS))
async def test_what_leaves_the_window_is_taken_in_and_an_end_is_no_failure(name: str, tmp_path: Path):
    async with made(name, tmp_path) as (backend, _):
        await backend.leaving("s1", "- person: The heron nests in Reykjavik.")
        await backend.ended("s1")
        await backend.ended("never heard of")

        found = "".join(await backend.recall("heron nests"))

    assert ("Reykjavik" in found) == (name in TAKES_IN)


async def test_openviking_makes_memories_of_a_session_when_it_leaves_or_ends(tmp_path: Path):
    async with made("openviking", tmp_path) as (backend, double):
        await backend.remember(SAID)
        await backend.remember(SAID)
        assert [path for _, path in double.seen].count("/api/v1/sessions") == 1
        assert not [path for _, path in double.seen if path.endswith("/commit")]

        await backend.leaving("s1", "whatever")
        await backend.remember(SAID)
        await backend.ended("s1")

    assert [path for _, path in double.seen].count("/api/v1/sessions/v1/commit") == 2


@pytest.mark.parametrize("name", REMOTE)
async def test_a_wrong_key_is_a_sentence_that_names_the_backend(name: str, tmp_path: Path):
    async with made(name, tmp_path, key="wrong") as (backend, _):
        with pytest.raises(HermesError, match=f"{name} refused \\(401\\)"):
            await backend.recall("cat")


BROKEN = {
    "html": Response(body=b"<html>Welcome</html>"),
    "error": Response(status=500, body=b"oh no"),
    "huge": Response(body=b'"' + b"x" * 1_100_000 + b'"'),
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("name", REMOTE)
async def test_garbage_is_a_sentence(name: str, broken: str, tmp_path: Path):
    async with made(name, tmp_path) as (backend, double):
        double.broken = BROKEN[broken]
        with pytest.raises(HermesError, match=name):
            await backend.recall("cat")


@pytest.mark.parametrize("shape", [b"null", b"[1, null, []]", b'{"results": {"a": 1}, "result": []}', b'"words"', b""])
@pytest.mark.parametrize("name", REMOTE)
async def test_an_answer_of_another_shape_recalls_nothing(name: str, shape: bytes, tmp_path: Path):
    async with made(name, tmp_path) as (backend, double):
        double.broken = Response(body=shape)

        assert list(await backend.recall("cat")) == []


@pytest.mark.parametrize("name", REMOTE)
async def test_a_service_that_is_not_there_is_a_sentence(name: str, tmp_path: Path):
    async with made(name, tmp_path) as (backend, _):
        pass
    with pytest.raises(HermesError, match=f"{name} at http://127.0.0.1:.* cannot be reached"):
        await backend.recall("cat")


@pytest.mark.parametrize("name", ["honcho", "mem0", "supermemory", "retaindb"])
async def test_without_a_key_it_says_how_to_give_one(name: str, tmp_path: Path):
    with pytest.raises(HermesError, match=f"{name} needs a key: `hermes config set {name.upper()}_API_KEY"):
        async with made(name, tmp_path, key="", url=""):
            pass
