"""Outgoing connections: kept and used again, requests in one piece, answers in every form, and what is none."""

import asyncio
import gc
import ssl
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
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


async def test_connections_are_kept_and_over_the_limit_a_request_waits():
    waiting, most, go = 0, 0, asyncio.Event()

    async def slow(_: Request) -> Response:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await go.wait()
        waiting -= 1
        return Response(body=b"ok")

    async with serve(slow) as server, client() as http:
        asked = [asyncio.create_task(http.get(server.url)) for _ in range(7)]
        while waiting < 4:
            await asyncio.sleep(0.01)
        go.set()
        assert {(await each).text for each in asked} == {"ok"}
        await http.get(server.url)
        assert (most, len(http._transport._all)) == (4, 4)


async def test_a_request_that_is_given_up_at_any_moment_leaves_no_socket():
    async def answer(_: Request) -> Response:
        return Response(body=b"ok")

    async def give_up(url: str, steps: int) -> None:
        async with client() as http:
            asked = asyncio.create_task(http.get(url))
            for _ in range(steps):
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.wait([asked])

    async with serve(answer) as server:
        for steps in range(30):
            await give_up(server.url, steps)

    gc.collect()  # A socket that nobody closed warns when it is collected.


async def test_an_answer_that_is_left_takes_its_connection_along():
    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"one"
        await asyncio.Event().wait()

    async def stream(_: Request) -> Response:
        return Response(body=pieces())

    async with serve(stream) as server, client() as http:
        async with http.stream("GET", server.url) as answer:
            assert await anext(answer.aiter_bytes()) == b"one"
        assert len(http._transport._all) == 0


@asynccontextmanager
async def speaking(answer: bytes, *, ends: bool) -> AsyncIterator[str]:
    """A server that says this to a request, whatever it is."""
    over = asyncio.Event()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        if not ends:
            await reader.read()
        writer.close()
        await writer.wait_closed()
        over.set()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    await over.wait()


@pytest.mark.parametrize(
    ("answer", "body", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nto the end", b"to the end", 0),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", b"ok", 0),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", b"ok", 1),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n", b"ok", 1),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", 1),
    ],
)
async def test_every_way_in_which_an_answer_ends(answer, body, kept):
    async with speaking(answer, ends=not kept) as url, client() as http:
        told = await http.get(url)
        assert (told.content, len(http._transport._all)) == (body, kept)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok", httpx2.RemoteProtocolError),
        (b"\x16\x03 no HTTP\r\n\r\n", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", httpx2.RemoteProtocolError),
    ],
)
async def test_what_is_no_answer_is_an_error_of_the_network(answer, error):
    async with speaking(answer, ends=True) as url, client() as http:
        with pytest.raises(error):
            await http.get(url)


async def test_who_asks_for_the_head_alone_waits_for_no_body():
    async def handler(_: Request) -> Response:
        return Response(body=b"hello")

    async with serve(handler) as server, client() as http:
        assert (await http.head(server.url)).headers["content-length"] == "5"
        assert (await http.get(server.url)).text == "hello"


async def test_a_connection_that_its_server_closed_is_not_used_again():
    async with noting(0, OK) as (url, _), client() as http:
        await http.get(url)
        (connection,) = http._transport._all
        connection.transport.abort()
        await asyncio.sleep(0)
        assert (await http.get(url)).text == "ok"


async def test_a_dead_address_and_silence_are_told_apart():
    async def silent(_: Request) -> Response:
        await asyncio.Event().wait()
        return Response()

    async with serve(silent) as server, client() as http:
        with pytest.raises(httpx2.ConnectError):
            await http.get("http://127.0.0.1:1")
        with pytest.raises(httpx2.ReadTimeout):
            await http.get(server.url, timeout=0.05)


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
REFUSED = b"HTTP/1.1 413 Too large\r\ncontent-length: 5\r\nconnection: close\r\n\r\nlarge"
MOST, EXPIRY = 4, 60.0


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
    return httpx2.AsyncClient(transport=Transport(trusted or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), MOST, EXPIRY))


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
