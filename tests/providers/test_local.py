"""Servers on this machine are found quickly, and only those that answer."""

import asyncio
import json
import time
from contextlib import asynccontextmanager

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.host.http import Http
from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.inbound.message import Request, Response
from hermes_agent.host.late import late
from hermes_agent.providers.broker import Broker
from hermes_agent.providers.local import (
    USUAL_PLACES,
    LocalServer,
    Place,
    list_models,
    look_around,
    real_window,
    server_address,
)
from hermes_agent.providers.routing.chain import single
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.providers.vendors import VENDORS
from hermes_agent.testing.model_servers import openai_model, serving
from tests.providers.asking import Book, route_to


def place(title: str, url: str) -> Place:
    return Place(title=title, vendor="custom", base_url=f"{url}/v1")


async def test_those_that_list_their_models_are_found_and_nobody_is_waited_for():
    async def lists(_: Request) -> Response:
        return Response(headers={"content-type": "application/json"}, body=b'{"data": [{"id": "a"}, {"id": "b"}]}')

    async def hangs(_: Request) -> Response:
        await asyncio.Event().wait()
        return Response()

    async def is_something_else(_: Request) -> Response:
        return Response(body=b"<html>")

    http = Http()
    async with serve(lists) as good, serve(hangs) as slow, serve(is_something_else) as odd:
        places = [place("slow", slow.url), place("odd", odd.url), place("good", good.url)]
        places.append(place("none", "http://127.0.0.1:9"))
        began = time.monotonic()
        found = await look_around(http, places)
        took = time.monotonic() - began
        await http.close()
    assert found == [LocalServer(place=places[2], models=("a", "b"))]
    assert took < 1.0


def test_the_usual_places_are_on_this_machine_and_of_known_vendors():
    assert all(place.base_url.startswith("http://127.0.0.1:") and place.vendor in VENDORS for place in USUAL_PLACES)


LOADED = {"models": [{"name": "qwen3:latest", "model": "qwen3:latest", "context_length": 16_384}]}
BY_HAND = {
    "parameters": 'stop "x"\nnum_ctx                        32768\n',
    "model_info": {"qwen3.context_length": 40_960},
}
MADE_FOR = {"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960}}
PROPS = {"default_generation_settings": {"n_ctx": 8_192, "temperature": 0.8}, "total_slots": 2}
VLLM = {
    "data": [{"id": "other", "max_model_len": 1}, {"id": "qwen3", "root": "Qwen/Qwen3-8B", "max_model_len": 12_288}]
}
STUDIO = {"id": "qwen3", "state": "loaded", "max_context_length": 131_072}


@asynccontextmanager
async def server_of(vendor: str, **answers: object):
    """Serves these answers by the last word of the path; one that is not given is a 404."""
    asked: list[str] = []

    async def handle(request: Request) -> Response:
        name = request.path.rpartition("/")[2]
        asked.append(name)
        if name not in answers:
            return Response(status=404)
        return Response(headers={"content-type": "application/json"}, body=json.dumps(answers[name]).encode())

    http = Http()
    async with serve(handle) as server:
        try:
            yield http, route_to(f"{vendor}/qwen3", f"{server.url}/v1"), asked
        finally:
            await http.close()


@pytest.mark.parametrize(
    ("vendor", "answers", "window"),
    [
        ("ollama", {"ps": LOADED, "show": BY_HAND}, 16_384),
        ("ollama", {"ps": {"models": []}, "show": BY_HAND}, 32_768),
        ("ollama", {"ps": {"models": [{"name": "other"}]}, "show": MADE_FOR}, 40_960),
        ("ollama", {"show": MADE_FOR}, 40_960),
        ("ollama", {"ps": [1], "show": "odd"}, None),
        ("ollama", {}, None),
        ("llamacpp", {"props": PROPS}, 8_192),
        ("llamacpp", {"props": {"default_generation_settings": None}}, None),
        ("llamacpp", {"props": [1]}, None),
        ("vllm", {"models": VLLM}, 12_288),
        ("vllm", {"models": {"data": [{"id": "qwen3"}]}}, None),
        ("vllm", {"models": {"data": 5}}, None),
        ("lmstudio", {"models": {"data": [{**STUDIO, "loaded_context_length": 4_096}]}}, 4_096),
        ("lmstudio", {"models": {"data": [STUDIO]}}, 131_072),
        ("lmstudio", {"models": {"data": []}}, None),
        ("lmstudio", {}, None),
    ],
)
async def test_the_window_is_what_the_server_gives_the_model(vendor: str, answers: dict, window: int | None):
    async with server_of(vendor, **answers) as (http, route, _):
        assert await late(route.vendor.window_probe)(http, route) == window


@pytest.mark.parametrize("vendor", ["ollama", "llamacpp", "vllm", "lmstudio"])
async def test_a_server_that_is_not_there_says_nothing(vendor: str):
    http = Http()
    assert await real_window(http, route_to(f"{vendor}/qwen3", "http://127.0.0.1:9/v1")) is None
    await http.close()


async def test_the_broker_asks_before_the_first_two_questions_and_never_again():
    async with server_of("ollama", show=BY_HAND) as (http, route, asked):
        broker = Broker(single(route, http, SystemClock(), ModelSettings()), Book())
        for _ in range(4):
            await broker.prepare()
    assert (broker.window, asked) == (32_768, ["ps", "show"] * 2)


async def test_a_window_that_a_person_set_is_not_asked_for():
    async with server_of("ollama", show=BY_HAND) as (http, route, asked):
        broker = Broker(single(route, http, SystemClock(), ModelSettings(window=9_000)), Book())
        await broker.prepare()
    assert asked == []


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        (" http://localhost:8080/ ", "http://localhost:8080/v1"),
        ("box:1234/v1/chat/completions", "http://box:1234/v1"),
        ("https://llm.example.com/api/v2/", "https://llm.example.com/api/v2"),
        ("llm.example.com", "https://llm.example.com/v1"),
        ("studio.local:1234/v1/models", "http://studio.local:1234/v1"),
        ("[::1]:8000", "http://[::1]:8000/v1"),
    ],
)
def test_a_short_address_is_completed(typed: str, address: str) -> None:
    assert server_address(typed) == address


async def test_a_server_says_its_models_or_why_not() -> None:
    http = Http()
    async with serving(openai_model([], keys=("k",), models=("one",))) as server:
        assert (await list_models(http, server.url, "k")).models == ("one",)
        refused = await list_models(http, server.url, "")
    gone = await list_models(http, "http://127.0.0.1:9/v1", "")
    await http.close()

    assert (refused.status, refused.models) == (401, ())
    assert gone.status == 0
    assert gone.why.startswith("could not be reached")


async def test_a_server_that_hangs_is_told_in_seconds() -> None:
    async def hangs(_: Request) -> Response:
        await asyncio.Event().wait()
        return Response()

    http = Http()
    async with serve(hangs) as server:
        found = await list_models(http, f"{server.url}/v1", "", seconds=0.2)
        await http.close()

    assert (found.status, found.why) == (0, "did not answer within 0.2 s")
