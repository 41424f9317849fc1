"""Each search service is asked as its description says, and its answers, also the bad ones, are understood."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from hermes_agent.core.errors import ToolError
from hermes_agent.host.http import Http
from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.inbound.message import Request, Response
from hermes_agent.host.late import late
from hermes_agent.tools.settings import SearchSettings
from hermes_agent.tools.web.searching import BACKENDS, Backend, Result, Unsearched, choose, search
from tests.tools.web.services import KEY, SERVICES

PAGES = [
    {"title": "First page", "url": "https://example.org/a?b=c&d", "text": "some words"},
    {"title": "Second", "url": "https://example.org/2", "text": "others"},
]
Asked = Callable[[Response | None], AbstractAsyncContextManager[str]]


@pytest.fixture(params=BACKENDS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def service(name: str, pages: list[dict[str, str]], instead: Response | None = None) -> AsyncIterator[str]:
    async def answer(request: Request) -> Response:
        return SERVICES[name](request, pages) if instead is None else instead

    async with serve(answer) as server:
        yield server.url


async def found(name: str, url: str, key: str = KEY) -> list[Result]:
    http = Http()
    try:
        chosen = choose(SearchSettings(backend=name, url=url), lambda _: key)
        return list(await search(http, chosen, "what is it?", 5, seconds=5))
    finally:
        await http.close()


async def test_pages_are_found_with_their_titles_addresses_and_words(name: str):
    async with service(name, PAGES) as url:
        results = await found(name, url)

    assert [(each.title, each.url) for each in results] == [(each["title"], each["url"]) for each in PAGES]
    assert all(
        each["text"] in result.text and "<" not in result.text for each, result in zip(PAGES, results, strict=True)
    )


async def test_nothing_found_is_no_error(name: str):
    async with service(name, []) as url:
        assert await found(name, url) == []


async def test_a_key_that_the_service_refuses_is_told(name: str):
    backend: Backend = late(BACKENDS[name])
    if not backend.key_name:
        return
    async with service(name, PAGES) as url:
        with pytest.raises(Unsearched, match=rf"{backend.key_name}|answered 422"):
            await found(name, url, "another-key")


@pytest.mark.parametrize(
    ("instead", "words"),
    [
        (Response(status=429, body=b"slow down"), "allows no more searches for now"),
        (Response(status=500, body=b"oh no"), "answered 500: oh no"),
        (Response(body=b"<html>maintenance</html>"), "not JSON|none of its results"),
        (Response(body=b'{"error": "odd"}'), "answered without|none of its results"),
        (Response(body=b"x" * (6 << 20)), "more than 5 MB"),
    ],
)
async def test_an_answer_that_is_none_is_told_in_a_sentence(name: str, instead: Response, words: str):
    async with service(name, PAGES, instead) as url:
        with pytest.raises(Unsearched, match=words):
            await found(name, url)


async def test_a_service_that_is_not_there_is_told(name: str):
    async with service(name, PAGES) as url:
        pass
    with pytest.raises(ToolError, match="cannot be reached"):
        await found(name, url)


async def test_duckduckgos_question_to_robots_is_told():
    asks = Response(body=b'<div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div>')
    async with service("ddgs", PAGES, asks) as url:
        with pytest.raises(Unsearched, match="takes this machine for a robot"):
            await found("ddgs", url)
