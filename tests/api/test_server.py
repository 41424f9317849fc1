"""Who gets in at all: names, origins, keys, sizes, types; and what each of them is told."""

import asyncio
import contextlib
import socket

import httpx2
import pytest

from hermes_agent.api.metrics import Metrics
from hermes_agent.api.problems import problem_of
from hermes_agent.api.server import counted
from hermes_agent.core.errors import DiskFull, HermesError, UnknownSession
from hermes_agent.host.inbound.message import Request, Response
from tests.api.served import GUEST_KEY, OWNER_KEY, Server, served
from tests.app.place import counting


async def raw(server: Server, text: str, *, more: bytes = b"") -> str:
    """What the server says to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
    writer.write(text.replace("\n", "\r\n").encode() + more)
    answer = await reader.read(65_536)
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return answer.decode()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8642", "", "[::1", "a b"])
async def test_a_page_whose_name_leads_here_is_not_let_in(tmp_path, host):
    """DNS rebinding: the browser connects to our address and says the page's own name."""
    async with served(tmp_path, counting) as server:
        answer = await server.ask("GET", "/v1/models", headers={"host": host})
        assert (answer.status_code, answer.json()["error"]["code"]) == (421, "wrong_host")
        assert (await server.ask("GET", "/health", key="", headers={"host": host})).status_code == 421


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8642", "10.1.2.3", "hermes.lan", "localhost."]
)
async def test_our_own_names_are_let_in(tmp_path, host):
    async with served(tmp_path, counting, api="  allowed_hosts: [hermes.lan]\n") as server:
        assert (await server.ask("GET", "/health", key="", headers={"host": host})).status_code == 200


@pytest.mark.parametrize("origin", ["null", "", "http://[", "http://[::1", "http://evil.example", "//127.0.0.1"])
async def test_an_origin_that_is_no_name_of_ours_is_not_let_in_whatever_it_looks_like(tmp_path, origin):
    async with served(tmp_path, counting) as server:
        answer = await server.ask("GET", "/health", key="", headers={"origin": origin})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "wrong_origin")


async def test_two_hosts_are_one_too_many(tmp_path):
    async with served(tmp_path, counting) as server:
        answer = await raw(server, "GET /health HTTP/1.1\nHost: localhost\nHost: evil.example\nConnection: close\n\n")
        assert "421" in answer.splitlines()[0]


async def test_pages_of_other_sites_are_not_let_in_and_nothing_invites_them(tmp_path):
    async with served(tmp_path, counting) as server:
        foreign = await server.ask("GET", "/v1/models", headers={"origin": "http://evil.example"})
        own = await server.ask("GET", "/v1/models", headers={"origin": server.url})
        asked = await server.ask("OPTIONS", "/v1/models", headers={"access-control-request-method": "GET"})

        assert (foreign.status_code, foreign.json()["error"]["code"]) == (403, "wrong_origin")
        assert (own.status_code, asked.status_code) == (200, 405)
        assert not any(name.startswith("access-control") for answer in (own, asked) for name in answer.headers)
        assert own.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("key", ["wrong", OWNER_KEY[:-1], f"{OWNER_KEY}x", "Ünïcode-key-0123456789"])
async def test_without_a_key_nothing_is_said(tmp_path, key):
    async with served(tmp_path, counting) as server:
        for path in ("/v1/models", "/v1/sessions", "/metrics", "/openapi.json", "/v1/search?q=x", "/v1/skills"):
            answer = await server.ask("GET", path, key="", headers={"authorization": f"Bearer {key}".encode()})
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_key_may_come_in_either_header(tmp_path):
    async with served(tmp_path, counting) as server:
        assert (await server.ask("GET", "/v1/models", key="", headers={"x-api-key": GUEST_KEY})).status_code == 200
        basic = await server.ask("GET", "/v1/models", key="", headers={"authorization": f"Basic {OWNER_KEY}"})
        assert basic.status_code == 401


async def test_a_body_over_the_limit_is_refused_before_it_is_read(tmp_path):
    large = {"messages": [{"role": "user", "content": "x" * 20_000}]}
    async with served(tmp_path, counting, api="  max_body_mb: 0.01\n") as server:
        answer = await server.ask("POST", "/v1/chat/completions", large)
        head = f"POST /v1/runs HTTP/1.1\nHost: localhost\nAuthorization: Bearer {OWNER_KEY}\n"
        told = await raw(server, f"{head}Content-Length: 9999999999\nConnection: close\n\n")
        chunks = b"2000\r\n" + b"x" * 0x2000 + b"\r\n"
        streamed = await raw(server, f"{head}Transfer-Encoding: chunked\nConnection: close\n\n", more=chunks * 3)

        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
        assert "413" in told.splitlines()[0]
        assert "413" in streamed.splitlines()[0]


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"content-type": "text/plain"}, b"{}", 415),
        ({"content-type": "application/json", "content-encoding": "gzip"}, b"{}", 415),
        ({"content-type": "application/json"}, b"{", 400),
        ({"content-type": "application/json"}, b"[" * 100_000, 400),
        ({"content-type": "application/json"}, b'{"messages":' + b'[{"x":' * 50_000, 400),
        ({"content-type": "application/json"}, b"\xff\xfe", 400),
        ({"content-type": "application/json; charset=utf-8"}, b'{"messages": 7}', 400),
    ],
)
async def test_a_body_that_is_no_request_is_refused(tmp_path, headers, body, status):
    async with served(tmp_path, counting) as server:
        given = {"authorization": f"Bearer {OWNER_KEY}", **headers}
        answer = await server.client.post("/v1/chat/completions", content=body, headers=given)
        assert answer.status_code == status
        assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/v1/chat/completions", {"messages": 7}, "messages"),
        ("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "x"}]}]}, "messages["),
        ("POST", "/v1/chat/completions", {}, None),
        ("GET", "/v1/sessions?limit=0", None, "limit"),
    ],
)
async def test_the_field_that_is_wrong_is_named(tmp_path, method, path, body, field):
    async with served(tmp_path, counting) as server:
        answer = await server.ask(method, path, body)
        error = answer.json()["error"]
        assert answer.status_code == 400
        assert (error["param"] or "").startswith(field or "")
        assert (error["param"] is None) is (field is None)


async def test_what_is_not_there_is_told_in_the_same_shape(tmp_path):
    async with served(tmp_path, counting) as server:
        nothing = await server.ask("GET", "/v2/models")
        method = await server.ask("PUT", "/v1/models")

        assert (nothing.status_code, nothing.json()["error"]["type"]) == (404, "not_found_error")
        assert (method.status_code, method.json()["error"]["type"]) == (405, "invalid_request_error")


async def test_a_client_that_leaves_in_the_middle_of_its_body_harms_nobody(tmp_path):
    async with served(tmp_path, counting) as server:
        head = f"POST /v1/runs HTTP/1.1\nHost: localhost\nAuthorization: Bearer {OWNER_KEY}\nContent-Length: 100\n\n"
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as opened:
            opened.sendall(head.replace("\n", "\r\n").encode() + b"{")
        assert (await server.ask("GET", "/health", key="")).status_code == 200


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (UnknownSession("None."), 404, "None."),
        (DiskFull("Full."), 503, "Full."),
        (HermesError("No."), 409, "No."),
        (ValueError("a secret detail"), 500, "Something in this program broke; logs/hermes.log has the details."),
    ],
)
def test_each_failure_has_its_answer(error, status, words):
    problem = problem_of(error)
    assert (problem.status, str(problem)) == (status, words)


async def test_a_failure_of_ours_is_an_apology_and_is_counted(caplog):
    metrics = Metrics()

    async def broken(request: Request) -> Response:
        raise ValueError("a secret detail")

    async with counted(broken, "127.0.0.1", 0, metrics) as place, httpx2.AsyncClient() as client:
        answer = await client.get(place.url)

    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
    assert "secret" not in answer.text
    assert "a secret detail" in caplog.text
    assert metrics.requests == {("GET", "other", 500): 1}
