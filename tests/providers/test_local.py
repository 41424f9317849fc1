"""Servers on this machine are found quickly, and only those that answer."""

import asyncio
import time

from hermes_agent.host.http import Http
from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.inbound.message import Request, Response
from hermes_agent.providers.local import USUAL_PLACES, LocalServer, Place, look_around
from hermes_agent.providers.vendors import VENDORS


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
