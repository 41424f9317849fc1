"""The shared clients."""

import asyncio
import ssl
import subprocess
import sys

import pytest

from hermes_agent.host.http import Http
from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.inbound.message import Request, Response

WITHOUT_HTTPX = """
import sys
import hermes_agent.host.http
hermes_agent.host.http.Http()
print("httpx2" in sys.modules)
"""


async def test_one_client_serves_a_loop_and_certificates_are_read_only_for_https():
    http = Http()
    plain, local = http.client("http://example.org/a"), http.client("http://127.0.0.1:1/b")
    assert http.client("http://example.com/c") is plain
    assert http.client("http://localhost:2/d") is local
    assert local is not plain
    assert _context(plain).get_ca_certs() == []
    assert http.client("https://example.org") is not plain
    await http.close()


async def test_a_client_for_http_refuses_every_https_server():
    http = Http()
    client = http.client("http://127.0.0.1:1")
    assert _context(client).verify_mode is ssl.CERT_REQUIRED
    await http.close()


def test_every_loop_has_its_own_client_and_a_closed_loop_leaves_none():
    http = Http()

    async def made() -> int:
        client = http.client("http://127.0.0.1:1")
        await http.close()
        return id(client)

    asyncio.run(made())
    asyncio.run(made())
    assert len(http._clients) == 0


async def test_what_listens_here_is_reached_past_a_proxy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    http = Http()

    async def handle(_: Request) -> Response:
        return Response(body=b"here")

    async with serve(handle) as server:
        response = await http.client(server.url).get(server.url)
        await http.close()
    assert response.text == "here"


async def test_other_machines_are_reached_through_the_machines_proxy(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []

    async def handle(request: Request) -> Response:
        asked.append(request.path)
        return Response(body=b"by proxy")

    async with serve(handle) as server:
        monkeypatch.setenv("http_proxy", server.url)
        http = Http()
        response = await http.client("http://example.test/x").get("http://example.test/x")
        await http.close()
    assert response.text == "by proxy"
    assert asked == ["http://example.test/x"]


async def test_failures_are_what_a_dead_address_raises():
    http = Http()
    with pytest.raises(http.failures):
        await http.client("http://127.0.0.1:9").get("http://127.0.0.1:9")
    await http.close()


def test_nothing_heavy_is_loaded_before_the_first_request():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_HTTPX],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "False"


def _context(client) -> ssl.SSLContext:
    return client._transport._pool._ssl_context
