"""One session that many programs ask at once, on a server that is killed again and again: each request has its own
answer, and one alone.

Two kills. `--full`: ten.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress

import httpx2
import pytest

from hermes_agent.core.events import MessageTaken, RunEnded
from hermes_agent.store.database import open_store
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving
from tests.api.served import lines
from tests.api.test_turns import two_turns
from tests.faults.test_many_sessions import KEY, answered, home_at, server

KILLS = 2


async def reply(places: list[str], name: str, *, stream: bool) -> str:
    """The answer to a request, which is sent again under its key until it has one, wherever the server is then."""
    body = {"messages": [{"role": "user", "content": name}], "stream": stream}
    text = ""
    while not text:
        with suppress(httpx2.TransportError):
            text = await once(places[-1], name, body)
        await asyncio.sleep(0.05)
    return text


async def once(url: str, name: str, body: dict[str, object]) -> str:
    """The whole answer; empty where it was cut."""
    headers = {"authorization": f"Bearer {KEY}", "x-hermes-session-key": "ours", "idempotency-key": name}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as client:
        answer = await client.post(f"{url}/v1/chat/completions", json=body)
    answer.raise_for_status()
    if not body["stream"]:
        return answer.json()["choices"][0]["message"]["content"]
    words = [each["delta"].get("content", "") for line in lines(answer.text) for each in line["choices"]]
    return "".join(words) if answer.text.endswith("data: [DONE]\n\n") else ""


async def more_than(model: ModelServer, count: int) -> None:
    while len(model.exchanges) < count:
        await asyncio.sleep(0.01)


@pytest.mark.timeout(600)
async def test_each_request_of_one_session_has_its_own_answer_whenever_the_server_is_killed(tmp_path, request):
    kills = 10 if request.config.getoption("--full", default=False) else KILLS
    names = [f"m{number}" for number in range(4 * kills)]
    chance, places = random.Random(13), ["http://127.0.0.1:1"]
    async with serving(openai_model(two_turns, keys=())) as model, asyncio.TaskGroup() as group:
        home = home_at(tmp_path / "at", model.url)
        asked = {
            name: group.create_task(reply(places, name, stream=bool(number % 2))) for number, name in enumerate(names)
        }
        for _ in range(kills):
            async with server(home) as (_process, url):
                places.append(url)
                await more_than(model, len(model.exchanges) + chance.randint(2, 6))
        async with server(home) as (_process, url):
            places.append(url)
            replies = {name: await task for name, task in asked.items()}
            await answered(home, len(names), 30)
    store = await open_store(home.database)
    (session,) = [row[0] for row in await store.read(lambda tx: tx.rows("SELECT id FROM session"))]
    entries = await store.history.entries(session)
    await store.close()

    assert replies == {name: f"About {name}." for name in names}
    taken = Counter(entry.event.inbox for entry in entries if isinstance(entry.event, MessageTaken))
    assert taken == dict.fromkeys(range(1, len(names) + 1), 1)
    ends = Counter(entry.event.text for entry in entries if isinstance(entry.event, RunEnded))
    assert ends == dict.fromkeys(replies.values(), 1)
