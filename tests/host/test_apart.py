"""A function in a process of its own gives what it gives, and what it takes has an end."""

import asyncio

import pytest

from hermes_agent.host.apart import Ended, apart
from tests.holds import longest_hold

LARGE = bytes(range(256)) * 100_000


def test_what_it_gives_comes_back_whole():
    assert asyncio.run(apart("base64:b64encode", b"ab\xff")) == b"YWL/"
    assert asyncio.run(apart("builtins:bytes", LARGE)) == LARGE


@pytest.mark.parametrize(
    ("function", "data"),
    [
        ("builtins:eval", b"9**9**9"),
        ("builtins:eval", b"bytes(2<<30)"),
        ("builtins:eval", b"len(1)"),
        ("no:where", b""),
    ],
    ids=["time", "memory", "failure", "no function"],
)
async def test_what_takes_too_much_or_fails_ends_alone(function: str, data: bytes):
    held = asyncio.create_task(longest_hold())

    with pytest.raises(Ended, match="1 s of work or 1 GB, or failed"):
        await apart(function, data, work=1)

    held.cancel()
    assert await held < 0.5


async def test_what_waits_too_long_is_ended():
    with pytest.raises(Ended, match=r"took more than 0\.1 s"):
        await apart("builtins:eval", b"__import__('time').sleep(60)", patience=0.1)


async def test_where_no_process_can_be_started_that_is_told():
    with pytest.raises(OSError, match="long"):
        await apart("builtins:bytes", b"", "x" * 4_000_000)
