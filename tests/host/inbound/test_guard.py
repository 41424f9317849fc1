"""Who gets in: our own names, bodies within their limits, a pace."""

import asyncio
from collections.abc import Callable

import pytest

from hermes_agent.host.inbound.message import (
    Body,
    Pace,
    Refused,
    Request,
    Room,
    check_names,
    hmac_hex,
    is_ours,
    read,
    same,
)


def request(*pieces: bytes, whole: bool = True, **headers: str) -> Request:
    """A request whose body has come so far."""
    body = Body()
    for piece in pieces:
        body.put(piece)
    if whole:
        body.end(whole=True)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method="POST", path="/", headers=named, pieces=body)


async def test_a_body_in_pieces_is_whole():
    assert await read(request(b"ab", b"c"), 3) == b"abc"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (lambda: request(b"abcd"), 413),
        (lambda: request(content_length="9999999999", whole=False), 413),
        (lambda: request(content_encoding="gzip"), 415),
        (lambda: request(b"a", whole=False), 408),
    ],
)
async def test_a_body_over_its_limits_is_refused(sent: Callable[[], Request], status: int):
    with pytest.raises(Refused) as refused:
        await read(sent(), 3, 0.01)
    assert refused.value.status == status


async def test_a_client_that_leaves_is_no_request():
    left = request(b"a", whole=False)
    assert isinstance(left.pieces, Body)
    left.pieces.end(whole=False)
    with pytest.raises(Refused, match="left"):
        await read(left, 3)


async def test_bodies_that_are_not_whole_hold_so_much_together_and_give_it_back():
    room, slow = Room(4), request(b"abc", whole=False)
    assert isinstance(slow.pieces, Body)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(read(slow, 9, room=room))
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="at once") as busy:
            await read(request(b"de"), 9, room=room)
        slow.pieces.end(whole=True)

    assert (busy.value.status, busy.value.headers["retry-after"]) == (503, "1")
    assert (first.result(), room.taken) == (b"abc", 0)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8642", "hermes.lan", "localhost."])
def test_our_own_names_are_let_in(host: str):
    assert is_ours(host, ["Hermes.lan"])


@pytest.mark.parametrize(
    "host", ["", "evil.example", "127.0.0.1.evil.example", "[::1", "a b", "localhost:1, evil.example"]
)
def test_other_names_are_not(host: str):
    with pytest.raises(Refused, match="does not have that name"):
        check_names(request(host=host), ["hermes.lan"])


def test_a_page_of_another_site_is_not_let_in():
    check_names(request(host="localhost:1", origin="http://localhost:1"), ())
    with pytest.raises(Refused, match="other sites"):
        check_names(request(host="localhost:1", origin="http://localhost:2"), ())


def test_a_pace_lets_so_many_in_and_fills_again():
    pace = Pace(2, 2, 0.0)
    assert [pace.takes(0.0) for _ in range(3)] == [True, True, False]
    assert pace.takes(30.0)


def test_github_s_own_example():
    proof = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert hmac_hex("It's a Secret to Everybody", b"Hello, World!") == proof


def test_odd_texts_are_compared_too():
    assert same("küche", "küche")
    assert not same("\udcff", "k")
