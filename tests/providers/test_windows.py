"""What Ollama is asked, and what is made of its answers."""

import json
from contextlib import asynccontextmanager

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.host.http import Http
from hermes_agent.host.serve import Request, Response, serve
from hermes_agent.providers.broker import Broker
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.providers.windows import ollama_window
from tests.providers.asking import Book, route_to

LOADED = {"models": [{"name": "qwen3:latest", "model": "qwen3:latest", "context_length": 16_384}]}
BY_HAND = {
    "parameters": 'stop "x"\nnum_ctx                        32768\n',
    "model_info": {"qwen3.context_length": 40_960},
}
MADE_FOR = {"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960}}


@asynccontextmanager
async def ollama(**answers: object):
    """Serves `ps` and `show`; one that is not given is a 404."""
    asked: list[str] = []

    async def handle(request: Request) -> Response:
        name = request.path.rpartition("/")[2]
        asked.append(name)
        if name not in answers:
            return Response(status=404)
        return Response(headers={"content-type": "application/json"}, body=json.dumps(answers[name]).encode())

    http = Http()
    async with serve(handle) as server:
        yield http, route_to("ollama/qwen3", f"{server.url}/v1"), asked
        await http.close()


@pytest.mark.parametrize(
    ("answers", "window"),
    [
        ({"ps": LOADED, "show": BY_HAND}, 16_384),
        ({"ps": {"models": []}, "show": BY_HAND}, 32_768),
        ({"ps": {"models": [{"name": "other", "context_length": 1}]}, "show": MADE_FOR}, 40_960),
        ({"show": MADE_FOR}, 40_960),
        ({"ps": [1], "show": "odd"}, None),
        ({}, None),
    ],
)
async def test_the_window_is_what_the_server_gives_the_model(answers: dict, window: int | None):
    async with ollama(**answers) as (http, route, _):
        assert await ollama_window(http, route) == window


async def test_a_server_that_is_not_there_says_nothing():
    http = Http()
    assert await ollama_window(http, route_to("ollama/qwen3", "http://127.0.0.1:9/v1")) is None
    await http.close()


async def test_the_broker_asks_before_the_first_two_questions_and_never_again():
    async with ollama(show=BY_HAND) as (http, route, asked):
        broker = Broker(route, ledger=Book(), http=http, clock=SystemClock(), settings=ModelSettings())
        for _ in range(4):
            await broker.prepare()
    assert (broker.window, asked) == (32_768, ["ps", "show"] * 2)


async def test_a_window_that_a_person_set_is_not_asked_for():
    async with ollama(show=BY_HAND) as (http, route, asked):
        broker = Broker(route, ledger=Book(), http=http, clock=SystemClock(), settings=ModelSettings(window=9_000))
        await broker.prepare()
    assert asked == []
