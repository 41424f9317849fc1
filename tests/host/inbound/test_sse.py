"""Server-sent events: as they are written, and while nothing comes."""

import asyncio

import pytest

from hermes_agent.host.inbound.message import ALIVE, event, with_pauses, written


async def test_silence_is_bridged_and_failures_come_through():
    async def slow():
        yield b"one"
        await asyncio.sleep(0.1)
        yield b"two"
        raise ValueError("the end")

    seen = []
    with pytest.raises(ValueError, match="the end"):
        await collect(with_pauses(slow(), 0.03), seen)

    assert [each for each in seen if each != ALIVE] == [b"one", b"two"]
    assert ALIVE in seen


async def collect(source, seen):
    async for each in source:
        seen.append(each)


async def test_a_reader_that_leaves_ends_the_source():
    ended = asyncio.Event()

    async def endless():
        try:
            while True:
                yield b"one"
        finally:
            ended.set()

    source = with_pauses(endless())
    assert await anext(source) == b"one"
    await source.aclose()
    assert ended.is_set()


async def test_events_end_when_their_server_does():
    over = asyncio.Event()

    async def endless():
        yield b"one"
        await asyncio.Event().wait()

    source = with_pauses(endless(), ended=over)
    assert await anext(source) == b"one"
    asyncio.get_running_loop().call_later(0.05, over.set)
    async with asyncio.timeout(5):
        assert [each async for each in source] == []


async def test_a_failure_comes_through_also_where_a_server_may_end():
    async def broken():
        yield b"one"
        raise ValueError("the end")

    with pytest.raises(ValueError, match="the end"):
        await collect(with_pauses(broken(), ended=asyncio.Event()), [])


def test_odd_text_can_be_written():
    assert written({"a": "\ud800"}) == b'{"a": "\\ud800"}'
    assert event({"a": 1}, name="x", number=3) == b'id: 3\nevent: x\ndata: {"a":1}\n\n'
