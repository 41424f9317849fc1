"""The API and webhooks go by the settings: where they listen, whom they let in, which routes there are."""

import asyncio
import contextlib
import socket
from pathlib import Path

import httpx2
import pytest

from hermes_agent.api.metrics import Metrics
from hermes_agent.api.problems import problem_of
from hermes_agent.api.serve import Servers, counted
from hermes_agent.app.opening import open_system
from hermes_agent.app.reloading import Reloading
from hermes_agent.core.errors import ConfigError, DiskFull, HermesError, UnknownSession
from hermes_agent.host.inbound.message import Request, Response
from hermes_agent.host.paths import Home
from tests.api.served import GUEST_KEY, OWNER_KEY, Server, served
from tests.app.place import counting

KEY, OTHER = "first-key-0123456789", "other-key-0123456789"
ROUTE = "webhooks:\n  enabled: true\n  port: 0\n  routes:\n    push: {secret: HOOK_SECRET}\n"


class Here:
    """A process whose servers go by a home."""

    def __init__(self, home: Home, servers: Servers, reloading: Reloading, said: list[str]) -> None:
        self.home, self.servers, self.reloading, self.said = home, servers, reloading, said

    async def set(self, settings: str, *secrets: str) -> str:
        """Save these, and what is wrong with them."""
        self.home.config_file.write_text(f"model: {{default: demo/scripted}}\n{settings}")
        self.home.env_file.write_text("".join(f"{secret}\n" for secret in secrets))
        self.home.env_file.chmod(0o600)
        await self.reloading.read()
        return self.reloading.notice

    async def asked(self, key: str) -> int:
        """The status of a question with that key."""
        async with httpx2.AsyncClient(trust_env=False) as client:
            got = await client.get(f"{self.servers.url}/v1/models", headers={"authorization": f"Bearer {key}"})
        return got.status_code

    async def reported(self, route: str) -> int:
        """The status of an unsigned report."""
        url = self.said[-1].split()[-1]
        async with httpx2.AsyncClient(trust_env=False) as client:
            return (await client.post(f"{url}/{route}", json={})).status_code


@pytest.fixture
async def here(tmp_path: Path):
    home = Home(root=tmp_path, base=tmp_path)
    home.config_file.write_text("model: {default: demo/scripted}\n")
    said: list[str] = []
    async with open_system(home) as runtime:
        servers = Servers(runtime, said.append)
        yield Here(home, servers, Reloading(runtime, [servers], lambda: None), said)
        await servers.close()
        await servers.follow(runtime.settings)
        assert servers.url == ""


async def test_the_api_begins_lets_in_whom_it_is_told_to_and_ends(here: Here):
    assert "API_SERVER_KEY is not set" in await here.set("api: {enabled: true, port: 0}\n")
    assert not here.said

    assert not await here.set("api: {enabled: true, port: 0}\n", f"API_SERVER_KEY={KEY}")
    first = here.servers.url
    assert [await here.asked(KEY), await here.asked(OTHER)] == [200, 401]

    assert not await here.set("api: {enabled: true, port: 0}\n", f"API_SERVER_KEY={OTHER}")
    assert here.servers.url == first
    assert [await here.asked(KEY), await here.asked(OTHER)] == [401, 200]

    assert not await here.set("api: {enabled: false, port: 0}\n")
    assert not here.servers.url


async def test_a_route_that_is_added_is_there_and_one_that_is_broken_changes_nothing(here: Here):
    await here.set(ROUTE, "HOOK_SECRET=a-secret-of-the-hooks")
    assert [await here.reported("push"), await here.reported("other")] == [401, 404]

    await here.set(f"{ROUTE}    other: {{secret: HOOK_SECRET}}\n", "HOOK_SECRET=a-secret-of-the-hooks")
    assert await here.reported("other") == 401

    wrong = await here.set(f"{ROUTE}    third: {{filters: {{a: '('}}}}\n", "HOOK_SECRET=a-secret-of-the-hooks")
    assert "not a regular expression" in wrong
    assert [await here.reported("other"), await here.reported("third")] == [401, 404]
    assert len(here.said) == 1


async def test_where_nobody_can_listen_the_server_stays_where_it_was(here: Here):
    await here.set("api: {enabled: true, port: 0}\n", f"API_SERVER_KEY={KEY}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        wrong = await here.set(f"api: {{enabled: true, port: {port}}}\n", f"API_SERVER_KEY={KEY}")
    assert "cannot be listened on" in wrong
    assert await here.asked(KEY) == 200

    assert not await here.set(f"api: {{enabled: true, port: {port}}}\n# again\n", f"API_SERVER_KEY={KEY}", "A=b")
    assert here.servers.url == f"http://127.0.0.1:{port}"
    assert not await here.set(f"api: {{enabled: true, port: {port}, host: localhost}}\n", f"API_SERVER_KEY={KEY}")
    assert await here.asked(KEY) == 200
    with pytest.raises(ConfigError):
        here.servers.check(here.reloading._runtime.settings, lambda _: "")


async def test_what_is_told_twice_at_once_is_done_once_and_an_end_meanwhile_leaves_nothing_open(here: Here):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    here.home.config_file.write_text(f"model: {{default: demo/scripted}}\napi: {{enabled: true, port: {port}}}\n")
    here.home.env_file.write_text(f"API_SERVER_KEY={KEY}\n")
    here.home.env_file.chmod(0o600)
    async with open_system(here.home) as runtime:
        servers = Servers(runtime, here.said.append)
        async with asyncio.TaskGroup() as group:
            group.create_task(servers.follow(runtime.settings))
            group.create_task(servers.follow(runtime.settings))
        assert len(here.said) == 1
        await servers.close()

        late = Servers(runtime, here.said.append)
        async with asyncio.TaskGroup() as group:
            group.create_task(late.follow(runtime.settings))
            group.create_task(late.close())
        assert late.url == ""
        with socket.socket() as again:
            again.bind(("127.0.0.1", port))


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
