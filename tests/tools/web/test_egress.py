"""The proxy of walled commands: whom it serves, where it goes, what it notes, and what bad requests get."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.jail import CannotJail, jail_of
from hermes_agent.sandbox.network import Network
from hermes_agent.sandbox.place import Command
from hermes_agent.sandbox.seccomp import is_supported
from hermes_agent.sandbox.traffic import REACHED, STOPPED, Callers
from hermes_agent.sandbox.walls import SYSTEM, Walls
from hermes_agent.tools.web.egress import EgressProxy
from hermes_agent.tools.web.pages import Addresses
from tests.sandbox.escapes import listening


class Notes(list[tuple[str, str]]):
    """A caller that keeps what is noted."""

    def note(self, kind: str, words: str) -> None:
        self.append((kind, words))

    __hash__ = object.__hash__  # type: ignore[assignment]  # one caller is itself alone


class Proxied:
    """A proxy, and requests to it from a caller with a token."""

    def __init__(self, proxy: EgressProxy, notes: Notes, token: str) -> None:
        self.proxy, self.notes = proxy, notes
        known = base64.b64encode(f"session:{token}".encode()).decode()
        self.known = f"Proxy-Authorization: Basic {known}\r\n"

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", await self.proxy.open())

    async def __call__(self, request: str, *, known: bool = True) -> str:
        """The whole answer to a request, whose end of header is added."""
        reader, writer = await self.open()
        writer.write(f"{request}\r\n{self.known if known else ''}\r\n".encode("latin-1"))
        async with asyncio.timeout(10):
            answer = await reader.read()
        writer.close()
        return answer.decode("latin-1")

    async def status(self, request: str) -> int:
        return int((await self(request)).split()[1])


async def proxied(hosts: Sequence[str], addresses: Addresses, **more: float) -> Proxied:
    proxy, notes = EgressProxy(addresses, Callers(), hosts, **more), Notes()
    return Proxied(proxy, notes, proxy.admit(notes))


@pytest.fixture
async def server() -> AsyncIterator[tuple[int, list[bytes]]]:
    """Answers each request with its own words, in one piece or as they come; its port, and what it heard."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(1 << 16):
            heard.append(chunk)
            if chunk.startswith(b"GET"):
                writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello")
                break
            writer.write(chunk)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as made:
        yield made.sockets[0].getsockname()[1], heard


@pytest.fixture
async def ask(server: tuple[int, list[bytes]]) -> AsyncIterator[Proxied]:
    """May reach the server, and every public host."""
    hosts = ("*", f"127.0.0.1:{server[0]}")

    async def resolve(host: str, _: int) -> Sequence[str]:
        return {"public.example": ["192.0.2.7"], "inside.example": ["10.0.0.1"]}.get(host, [])

    made = await proxied(hosts, Addresses(private=hosts[1:], resolve=resolve))
    yield made
    await made.proxy.close()


async def test_it_starts_once_whoever_asks_and_again_after_its_end(ask: Proxied) -> None:
    async with asyncio.TaskGroup() as several:
        ports = [several.create_task(ask.proxy.open()) for _ in range(5)]
    await ask.proxy.close()

    assert len({port.result() for port in ports}) == 1
    assert await ask.status("GET / HTTP/1.1") == 400


async def test_a_tunnel_carries_bytes_both_ways_and_its_end(ask: Proxied, server: tuple[int, list[bytes]]) -> None:
    reader, writer = await ask.open()
    writer.write(f"CONNECT 127.0.0.1:{server[0]} HTTP/1.1\r\n{ask.known}\r\n".encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    for word in (b"one", b"\x00\xff" * 50_000):
        writer.write(word)
        assert await reader.readexactly(len(word)) == word
    writer.write_eof()

    assert await reader.read() == b""
    assert ask.notes == [(REACHED, f"127.0.0.1:{server[0]}")]
    writer.close()


async def test_a_plain_request_reaches_the_server_as_one_for_itself(
    ask: Proxied, server: tuple[int, list[bytes]]
) -> None:
    port, heard = server
    fields = "Host: other.example\r\nX-Mine: 1\r\nConnection: x-hop\r\nX-Hop: 2"
    request = f"GET http://127.0.0.1:{port}/a?b=c HTTP/1.1\r\n{fields}"

    answer = await ask(request)

    assert answer.endswith("hello")
    assert heard == [
        f"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Mine: 1\r\nConnection: close\r\n\r\n".encode()
    ]


async def test_a_stranger_is_asked_for_a_token_and_a_token_that_was_taken_back_is_none(
    ask: Proxied, server: tuple[int, list[bytes]]
) -> None:
    request = f"CONNECT 127.0.0.1:{server[0]} HTTP/1.1"
    stranger = await ask(request, known=False)
    for token in list(ask.proxy._tokens):
        ask.proxy.dismiss(token)

    assert stranger.startswith("HTTP/1.1 407 ")
    assert "\r\nProxy-Authenticate: Basic" in stranger
    assert await ask.status(request) == 407
    assert (server[1], ask.notes) == ([], [])


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("169.254.169.254", "keys"),
        ("10.0.0.1", "private"),
        ("inside.example", "private"),
        ("[::ffff:10.0.0.1]", "private"),
        ("[::1]", "private"),
        ("2130706433", "private"),
        ("0177.0.0.1", "private"),
        ("0x7f.1", "private"),
        ("localhost.", "localhost"),
    ],
)
@pytest.mark.parametrize("form", ["GET http://{}/ HTTP/1.1", "CONNECT {}:443 HTTP/1.1"])
async def test_what_is_not_public_is_refused_in_words_and_noted(ask: Proxied, host: str, why: str, form: str) -> None:
    answer = await ask(form.format(host))

    status = "502" if why == "localhost" else "403"
    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert why in answer.partition("\r\n")[0]
    assert [kind for kind, _ in ask.notes] == ([STOPPED] if status == "403" else [])


async def test_a_service_of_this_machine_and_the_proxy_itself_need_to_be_named_with_their_port(
    server: tuple[int, list[bytes]],
) -> None:
    hosts = ("127.0.0.1", "127.0.0.2:*")
    ask = await proxied(hosts, Addresses(private=hosts))
    own = await ask.proxy.open()
    named = await proxied((f"127.0.0.1:{own}",), Addresses(private=("127.0.0.1",)))
    named.proxy._port = own

    assert await ask.status(f"CONNECT 127.0.0.1:{server[0]} HTTP/1.1") == 403
    assert await ask.status(f"CONNECT 127.0.0.1:{own} HTTP/1.1") == 403
    assert server[1] == []
    await ask.proxy.close()
    await named.proxy.close()


async def test_a_list_lets_only_its_hosts_through_and_says_which() -> None:
    async def resolve(host: str, _: int) -> Sequence[str]:
        return ["10.9.9.9"]  # whoever passes the list is refused for this

    ask = await proxied(("*.good.example", "mail.example:25", "[fd00::1]:7"), Addresses(resolve=resolve))
    for target, passes in {
        "a.good.example:443": True,
        "a.good.example:8443": True,
        "a.good.example:25": False,
        "good.example:443": False,
        "good.example.evil.example:443": False,
        "mail.example:25": True,
        "mail.example:443": False,
        "[fd00::1]:7": True,
    }.items():
        line = (await ask(f"CONNECT {target} HTTP/1.1")).partition("\r\n")[0]
        assert ("private" in line) == passes, line
        assert passes or "`terminal.network`" in line
    await ask.proxy.close()


async def test_ports_of_mail_and_logins_need_to_be_named(ask: Proxied) -> None:
    for port in (22, 25, 465):
        assert await ask.status(f"CONNECT public.example:{port} HTTP/1.1") == 403


async def test_a_name_that_changes_its_address_is_met_where_it_was_checked(server: tuple[int, list[bytes]]) -> None:
    asked: list[str] = []

    async def resolve(host: str, _: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    name = f"changes.example:{server[0]}"
    ask = await proxied((name,), Addresses(private=(name,), resolve=resolve))

    assert (await ask(f"GET http://{name}/ HTTP/1.1")).endswith("hello")
    assert asked == ["changes.example"]
    await ask.proxy.close()


@pytest.mark.parametrize(
    "request_",
    [
        "GET / HTTP/1.1",
        "GET https://public.example/ HTTP/1.1",
        "GET ftp://public.example/ HTTP/1.1",
        "CONNECT public.example HTTP/1.1",
        "CONNECT user@public.example:443 HTTP/1.1",
        "CONNECT public.example:99999 HTTP/1.1",
        "CONNECT public.example:0 HTTP/1.1",
        "GET http://public.example/ HTTP/2.0",
        "GET  http://public.example/ HTTP/1.1",
        "GET http://public.example/\nX: 1 HTTP/1.1",
        "GET http://public.example/ HTTP/1.1\r\nX: a\rb",
        "GET http://public.example/ HTTP/1.1\r\nX: a\nY: b",
        "GET http://public.example/ HTTP/1.1\r\nX : a",
        "GET http://public.example/ HTTP/1.1\r\n folded: a",
        "GET http://public.example\\@inside.example/ HTTP/1.1",
        "G\x00T http://public.example/ HTTP/1.1",
        f"GET http://public.example/ HTTP/1.1\r\nX: {'x' * 70_000}",
    ],
)
async def test_a_request_that_is_none_is_refused(ask: Proxied, request_: str) -> None:
    assert await ask.status(request_) == 400
    assert ask.notes == []


async def test_who_sends_a_header_slowly_is_dropped_and_others_are_served_meanwhile(
    server: tuple[int, list[bytes]],
) -> None:
    hosts = (f"127.0.0.1:{server[0]}",)
    ask = await proxied(hosts, Addresses(private=hosts), head_seconds=0.2)
    reader, writer = await ask.open()
    writer.write(b"GET http")

    assert (await ask(f"GET http://127.0.0.1:{server[0]}/ HTTP/1.1")).endswith("hello")
    async with asyncio.timeout(10):
        assert await reader.read() == b""
    writer.close()
    await ask.proxy.close()


async def test_a_server_that_is_not_there_is_told_so_and_was_not_reached(ask: Proxied) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    hosts = (f"127.0.0.1:{port}",)
    other = await proxied(hosts, Addresses(private=hosts))

    assert "502 " in (answer := await other(f"CONNECT 127.0.0.1:{port} HTTP/1.1"))
    assert f"127.0.0.1:{port} cannot be reached" in answer
    assert await ask.status("GET http://nowhere.example/ HTTP/1.1") == 502
    assert (other.notes, ask.notes) == ([], [])
    await other.proxy.close()


async def test_connections_of_one_caller_are_limited(ask: Proxied, server: tuple[int, list[bytes]]) -> None:
    made = [await ask.open() for _ in range(129)]
    answers = []
    for reader, writer in made:
        writer.write(f"CONNECT 127.0.0.1:{server[0]} HTTP/1.1\r\n{ask.known}\r\n".encode())
        answers.append((await reader.readuntil(b"\r\n"))[9:12])
    for _, writer in made:
        writer.close()

    assert answers == [b"200"] * 128 + [b"502"]


@pytest.mark.skipif(not is_supported(), reason="this kernel hands no connection over")
@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
async def test_programs_in_a_wall_reach_what_the_owner_named_and_it_is_known_whom(kind: str, tmp_path: Path) -> None:
    fetches = "import urllib.request as u; print(u.urlopen('http://fine.example:{0}/python').status)"
    text = (
        "curl -sS -w '%{{http_code}}\n' http://fine.example:{0}/curl; curl -sS http://evil.example/ ;"
        f' {sys.executable} -IS -c "{fetches}"; export http_proxy=http://127.0.0.1:1'
    )
    walls = Walls(readable=(*SYSTEM, sys.prefix, sys.base_prefix), person=str(tmp_path))
    try:
        jail_of(kind, walls)
    except CannotJail as reason:
        pytest.skip(str(reason))

    async def resolve(host: str, _: int) -> Sequence[str]:
        return ["127.0.0.1"]

    with listening() as (port, reached):
        hosts = (f"fine.example:{port}",)
        proxy = EgressProxy(Addresses(private=hosts, resolve=resolve), Callers(), hosts)
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        place = LocalPlace(
            folder=tmp_path / "exec", env=env, jail=partial(jail_of, kind, walls), network=Network(proxy)
        )
        work = tmp_path / "work"
        work.mkdir()
        for name in ("g/1", "g/2"):  # the second has the shell that the first left
            running = await place.start(name, Command(text=text.format(port), folder=str(work), shell="g"))
            ended = await running.wait()
            output = (await running.read(0, 10_000)).decode()
            assert "204\n" in output, output
            assert "204\n" in output.partition("evil.example")[2], output
            assert "The wall lets commands reach only fine.example" in output
            assert ended.reached == hosts
            assert len(ended.stopped) == 1, ended.stopped
            assert "evil.example:80" in ended.stopped[0]
        assert "proxy" not in (tmp_path / "exec" / "g" / ".kept").read_text()
        assert "http_proxy" not in place.exported("g")
        await place.close()
    assert reached == ["/curl", "/python"] * 2


def test_a_proxy_that_begins_in_another_loop_leaves_no_socket_of_the_first_open() -> None:
    proxy = EgressProxy(Addresses(), Callers())
    first = asyncio.run(proxy.open())

    async def again() -> None:
        assert await proxy.open() != 0
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", first)
        await proxy.close()

    asyncio.run(again())
