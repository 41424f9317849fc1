"""Search services on loopback, written from their public descriptions: what each asks of a request, what it answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, quote

from hermes_agent.host.inbound.message import Request, Response

KEY = "a-key"
Answer = Callable[[Request, list[Mapping[str, str]]], Response]


def as_json(status: int, **values: object) -> Response:
    return Response(status=status, headers={"Content-Type": "application/json"}, body=json.dumps(values).encode())


def _body(request: Request) -> dict[str, object]:
    assert request.method == "POST"
    assert request.headers["content-type"] == "application/json"
    return json.loads(request.body)


def tavily(request: Request, pages: list[Mapping[str, str]]) -> Response:
    if request.headers.get("authorization") != f"Bearer {KEY}":
        return as_json(401, detail={"error": "Unauthorized: missing or invalid API key."})
    asked = _body(request)
    assert (request.path, asked["max_results"]) == ("/search", 5)
    rows = [{"title": each["title"], "url": each["url"], "content": each["text"], "score": 0.9} for each in pages]
    return as_json(200, query=asked["query"], results=rows, response_time=0.5)


def brave(request: Request, pages: list[Mapping[str, str]]) -> Response:
    if request.headers.get("x-subscription-token") != KEY:
        return as_json(422, type="ErrorResponse", error={"code": "SUBSCRIPTION_TOKEN_INVALID"})
    assert (request.method, request.path) == ("GET", "/res/v1/web/search")
    assert parse_qs(request.query)["count"] == ["5"]
    if not pages:
        return as_json(200, type="search", query={"original": "x"})
    rows = [
        {"title": each["title"], "url": each["url"], "description": f"<strong>{each['text']}</strong> &amp; more"}
        for each in pages
    ]
    return as_json(200, type="search", web={"type": "search", "results": rows})


def exa(request: Request, pages: list[Mapping[str, str]]) -> Response:
    if request.headers.get("x-api-key") != KEY:
        return as_json(401, error="Invalid API key", tag="INVALID_API_KEY")
    asked = _body(request)
    assert (request.path, asked["numResults"]) == ("/search", 5)
    rows = [{"id": each["url"], "title": each["title"], "url": each["url"], "text": each["text"]} for each in pages]
    return as_json(200, requestId="r", results=rows)


def firecrawl(request: Request, pages: list[Mapping[str, str]]) -> Response:
    if request.headers.get("authorization") != f"Bearer {KEY}":
        return as_json(401, success=False, error="Unauthorized: Invalid token")
    asked = _body(request)
    assert (request.path, asked["limit"]) == ("/v2/search", 5)
    rows = [{"title": each["title"], "url": each["url"], "description": each["text"]} for each in pages]
    return as_json(200, success=True, data={"web": rows})


def searxng(request: Request, pages: list[Mapping[str, str]]) -> Response:
    asked = parse_qs(request.query)
    if asked.get("format") != ["json"]:
        return Response(status=403, body=b"format not allowed")
    assert request.path == "/search"
    rows = [{"title": each["title"], "url": each["url"], "content": each["text"], "engine": "x"} for each in pages]
    return as_json(200, query=asked["q"][0], results=rows, number_of_results=len(rows))


def ddgs(request: Request, pages: list[Mapping[str, str]]) -> Response:
    assert (request.method, request.path) == ("POST", "/html/")
    assert parse_qs(request.body.decode())["q"]
    advert = '<div class="result result--ad"><a class="result__a" href="https://duckduckgo.com/y.js?ad_domain=x">Buy</a></div>'
    rows = "".join(
        f'<div class="result results_links web-result"><h2><a class="result__a" '
        f'href="//duckduckgo.com/l/?uddg={quote(each["url"], safe="")}&amp;rut=1">{each["title"]}</a></h2>'
        f'<a class="result__snippet" href="#"><b>{each["text"]}</b></a></div>'
        for each in pages
    )
    none = "" if pages else '<div class="no-results">No results.</div>'
    text = f'<html><body><div id="links" class="results">{advert if pages else ""}{rows}{none}</div></body></html>'
    return Response(headers={"Content-Type": "text/html"}, body=text.encode())


SERVICES: dict[str, Answer] = {
    "tavily": tavily,
    "brave": brave,
    "exa": exa,
    "firecrawl": firecrawl,
    "searxng": searxng,
    "ddgs": ddgs,
}
