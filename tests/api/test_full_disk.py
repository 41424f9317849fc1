"""A full disk and a read-only database over HTTP: 503 with a sentence, and nothing that was kept is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hermes_agent.core.errors import DiskFull
from hermes_agent.providers.demo.script import Say
from hermes_agent.store.database import Store
from hermes_agent.testing.faults import Hang
from tests.api.served import served
from tests.app.place import counting
from tests.gateway.chats.broken_store import no_room, read_only, room, writable

LONG = "All work and no play. " * 2000
SAID = ({"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Reply 1."})
Change = Callable[[Store], Awaitable[None]]


@pytest.mark.parametrize(
    ("breaks", "mends", "why"), [(no_room, room, "No room left"), (read_only, writable, "for writing")]
)
async def test_what_cannot_be_kept_is_refused_with_a_sentence_and_taken_later(
    tmp_path: Path, breaks: Change, mends: Change, why: str
):
    async with served(tmp_path, counting) as server:
        first = await server.chat("Hi", headers={"x-hermes-session-key": "mine"})
        assert first.status_code == 200
        told = (await server.chat("Hello")).headers["x-hermes-session-id"]
        record = await server.runtime.hermes.record(first.headers["x-hermes-session-id"])
        before = await server.log(record.id)
        await breaks(server.runtime.store)

        for path, body in (
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": LONG}]}),
            ("/v1/responses", {"input": LONG}),
            ("/v1/runs", {"input": LONG}),
            ("/v1/chat/completions", {"messages": [*SAID, {"role": "user", "content": LONG}]}),
        ):
            answer = await server.ask("POST", path, body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_failed")
            assert why in answer.json()["error"]["message"]
            assert int(answer.headers["retry-after"]) > 0
        assert (await server.ask("GET", f"/v1/sessions/{record.id}")).status_code == 200  # What is there can be read.
        assert len(server.model.exchanges) == 2

        await mends(server.runtime.store)
        assert (await server.chat(LONG)).status_code == 200
        assert (await server.chat("Hello", "Reply 1.", LONG)).headers["x-hermes-session-id"] == told
        assert (await server.log(record.id))[: len(before)] == before


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_what_was_taken_in_before_the_store_failed_is_not_to_be_sent_again(tmp_path: Path, path: str):
    body = {"/v1/responses": {"input": "Hi"}}.get(path, {"messages": [{"role": "user", "content": "Hi"}]})
    async with served(tmp_path, [Say("Hello."), Hang()]) as server:
        session = (await server.chat("Hi")).headers["x-hermes-session-id"]
        asked = asyncio.ensure_future(server.ask("POST", path, body, headers={"x-hermes-session-id": session}))
        while len(server.model.exchanges) < 2:
            await asyncio.sleep(0.01)
        while not asked.done():
            server.runtime.hermes.scheduler.bus.fail(session, DiskFull("No room left."))
            await asyncio.sleep(0.01)
        answer = await asked

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_failed")
    assert answer.headers["x-should-retry"] == "false"
    assert "retry-after" not in answer.headers
