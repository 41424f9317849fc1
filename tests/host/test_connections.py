"""Connections: how many there are, which is used again and which closed; and requests that go out in one piece: what
arrives, whole and in order, and what may be answered early."""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hermes_agent.host.connections import Transport
from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.inbound.message import Request, Response


class Slow:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.waiting = 0

    async def __call__(self, request: Request) -> Response:
        self.waiting += 1
        await self.go.wait()
        return Response(body=b"ok")


def transport(most: int = 4, seconds: float = 60.0, trusted: ssl.SSLContext | None = None) -> Transport:
    return Transport(trusted or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), most, seconds)


def counts(made: Transport) -> tuple[int, int]:
    return len(made.connections.busy), len(made.connections.free)


async def test_as_many_are_at_work_as_may_be_and_then_wait_for_more():
    slow, made = Slow(), transport(5)
    async with serve(slow) as server, httpx2.AsyncClient(transport=made, timeout=10) as client:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(client.get(server.url)) for _ in range(8)]
            while slow.waiting < 5:
                await asyncio.sleep(0.01)
            assert counts(made) == (5, 0)
            slow.go.set()
        assert {task.result().text for task in asked} == {"ok"}
        assert counts(made) == (0, 5)


async def test_who_does_not_wait_for_room_is_told():
    slow, made = Slow(), transport(1)
    async with serve(slow) as server, httpx2.AsyncClient(transport=made, timeout=10) as client:
        slow.go.set()
        async with client.stream("GET", server.url):
            with pytest.raises(httpx2.PoolTimeout):
                await client.get(server.url, timeout=httpx2.Timeout(10, pool=0.01))
        assert (await client.get(server.url)).text == "ok"


async def test_a_quiet_program_keeps_to_one_connection_for_each_address():
    slow, made = Slow(), transport()
    slow.go.set()
    async with serve(slow) as one, serve(slow) as other, httpx2.AsyncClient(transport=made, timeout=10) as client:
        for url in (one.url, one.url, other.url, one.url):
            await client.get(url)
        async with client.stream("GET", one.url) as answer:
            assert counts(made) == (1, 1)
            await answer.aread()
        assert counts(made) == (0, 2)
    assert counts(made) == (0, 0)


async def test_a_connection_that_grew_old_or_was_closed_there_is_not_used_again():
    slow, old, closed = Slow(), transport(seconds=0.0), transport()
    slow.go.set()
    async with httpx2.AsyncClient(transport=old) as aged, httpx2.AsyncClient(transport=closed) as left:
        async with serve(slow) as server:
            for _ in range(2):
                assert (await aged.get(server.url)).text == "ok"
            assert (await left.get(server.url)).text == "ok"
            assert counts(old) == (0, 1)
        (kept,) = closed.connections.free
        while not kept.has_expired():
            await asyncio.sleep(0.01)
        with pytest.raises(httpx2.ConnectError):
            await left.get(server.url)
        assert counts(closed) == (0, 0)


async def test_a_body_that_nobody_reads_to_its_end_closes_its_connection():
    async def much(_: Request) -> Response:
        return Response(body=b"x" * 10_000_000)

    made = transport()
    async with serve(much) as server, httpx2.AsyncClient(transport=made, timeout=10) as client:
        async with client.stream("GET", server.url):
            assert counts(made) == (1, 0)
        assert counts(made) == (0, 0)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ftp://127.0.0.1:1"])
async def test_a_request_that_fails_takes_no_place(url: str):
    made = transport(1)
    async with httpx2.AsyncClient(transport=made, timeout=10) as client:
        for _ in range(2):
            with pytest.raises((httpx2.ConnectError, httpx2.UnsupportedProtocol)):
                await client.get(url)
    assert counts(made) == (0, 0)


class Resting:
    """A free connection, which may have grown old; closing it takes a round of the loop."""

    def __init__(self, *, old: bool) -> None:
        self.old = old

    def can_handle_request(self, _origin: object) -> bool:
        return True

    def has_expired(self) -> bool:
        return self.old

    async def aclose(self) -> None:
        await asyncio.sleep(0)


async def test_two_requests_that_find_an_old_connection_share_no_other():
    pool = transport().connections
    fresh = Resting(old=False)
    pool.free[:] = [fresh, Resting(old=True)]

    taken = await asyncio.gather(pool._taken(None), pool._taken(None))

    assert sorted(taken, key=lambda one: one is not None) == [None, fresh]


async def test_a_request_that_is_cancelled_takes_no_place():
    slow, made = Slow(), transport(1)
    async with serve(slow) as server, httpx2.AsyncClient(transport=made, timeout=10) as client:
        first = asyncio.create_task(client.get(server.url))
        while not slow.waiting:
            await asyncio.sleep(0.01)
        second = asyncio.create_task(client.get(server.url))
        await asyncio.sleep(0)
        for each in (second, first):
            each.cancel()
        await asyncio.wait((first, second))
        slow.go.set()
        assert counts(made) == (0, 0)
        assert (await client.get(server.url)).text == "ok"


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
REFUSED = b"HTTP/1.1 413 Too large\r\ncontent-length: 5\r\nconnection: close\r\n\r\nlarge"


class Noting(asyncio.Protocol):
    """Notes each piece that arrives, and answers when it has so many bytes of body."""

    def __init__(self, pieces: list[bytes], wanted: int, answer: bytes) -> None:
        self.pieces, self.wanted, self.answer = pieces, wanted, answer
        self.arrived = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)
        self.arrived += data
        _head, end, body = self.arrived.partition(b"\r\n\r\n")
        if end and len(body) >= self.wanted:
            self.arrived = b""
            self.transport.write(self.answer)
            if b"close" in self.answer:
                self.transport.close()


@asynccontextmanager
async def noting(
    wanted: int, answer: bytes = OK, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[str, list[bytes]]]:
    pieces: list[bytes] = []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Noting(pieces, wanted, answer), "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}/", pieces


def client(trusted: ssl.SSLContext | None = None) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=transport(trusted=trusted))


async def test_head_and_body_go_out_in_one_piece_each_time():
    async with noting(5) as (url, pieces), client() as http:
        for _ in range(2):
            assert (await http.post(url, content=b"hello")).text == "ok"

    assert [piece.rpartition(b"\r\n\r\n")[2] for piece in pieces] == [b"hello", b"hello"]


async def test_a_large_body_arrives_whole():
    body = bytes(range(256)) * 4_000

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 10_000):
            yield body[start : start + 10_000]

    async with noting(len(body)) as (url, pieces), client() as http:
        answer = await http.post(url, content=parts(), headers={"content-length": str(len(body))})

    assert answer.text == "ok"
    assert b"".join(pieces).partition(b"\r\n\r\n")[2] == body


async def test_a_server_that_refuses_in_the_middle_of_a_body_is_heard():
    async with noting(1, REFUSED) as (url, _), client() as http:
        assert (await http.post(url, content=b"x" * 500)).status_code == 413


async def test_a_server_that_has_gone_is_an_error_of_the_network():
    async with noting(0, b"close") as (url, _), client() as http:
        with pytest.raises(httpx2.TransportError):
            await http.get(url)


async def test_what_is_written_after_an_upgrade_goes_out_at_once():
    upgraded = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"
    asked = {"connection": "upgrade", "upgrade": "x"}
    async with (
        noting(0, upgraded) as (url, pieces),
        client() as http,
        http.stream("GET", url, headers=asked) as answer,
        asyncio.timeout(5),
    ):
        await answer.extensions["network_stream"].write(b"\x81\x01a")
        while len(pieces) < 2:
            await asyncio.sleep(0.01)

    assert pieces[1] == b"\x81\x01a"


async def test_within_tls_it_is_the_same():
    theirs, ours = contexts()
    async with noting(5, tls=theirs) as (url, pieces), client(ours) as http:
        assert (await http.post(url, content=b"hello")).text == "ok"

    assert [piece.rpartition(b"\r\n\r\n")[2] for piece in pieces] == [b"hello"]


async def test_a_certificate_of_nobody_is_refused():
    theirs, _ = contexts()
    async with noting(0, tls=theirs) as (url, pieces), client(ssl.create_default_context()) as http:
        with pytest.raises(httpx2.ConnectError):
            await http.get(url)

    assert pieces == []


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server with a certificate of its own, and a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate + secret)
        file.flush()
        theirs.load_cert_chain(file.name)
    ours.load_verify_locations(cadata=certificate.decode())
    return theirs, ours
