"""Words of a run on their way into a stream: none twice, none lost, none taken back."""

import asyncio

import pytest

from hermes_agent.api.events import event, with_pauses, written
from hermes_agent.api.live_text import Words
from hermes_agent.core.events import Replied, TurnStarted
from hermes_agent.core.messages import Message, Role, Text
from hermes_agent.core.model import Retrying, StopReason, TextDelta, Usage


def delta(text: str) -> TextDelta:
    return TextDelta(text=text)


def whole(text: str, stop: StopReason = StopReason.END) -> Replied:
    message = Message(role=Role.ASSISTANT, parts=(Text(text=text),))
    return Replied(
        turn=1, call_id="", message=message, stop=stop, usage=Usage(), provider="", model="", cost=None, seconds=0.0
    )


BEGUN = TurnStarted(turn=1, call_id="", messages=1)
AGAIN = Retrying(reason="", attempt=2, delay=0.0)


@pytest.mark.parametrize(
    ("events", "sent"),
    [
        ([delta("a"), delta("b"), whole("ab")], "ab"),
        ([whole("ab")], "ab"),
        ([delta("a"), whole("ab")], "ab"),
        ([delta("a"), whole("a"), delta("b"), whole("b")], "a\n\nb"),
        ([whole("a"), whole("b")], "a\n\nb"),
        ([delta("a"), whole("a", StopReason.LENGTH), delta("b"), whole("b")], "ab"),
        ([delta("ab"), AGAIN, delta("a"), delta("bc"), whole("abc")], "abc"),
        ([delta("ab"), AGAIN, delta("x"), delta("y"), whole("xy")], "ab\n\nxy"),
        ([delta("ab"), BEGUN, delta("a"), delta("bc"), whole("abc")], "abc"),
        ([AGAIN, delta("a"), whole("a")], "a"),
        ([delta("ab"), whole("xy")], "ab"),
    ],
)
def test_what_is_sent(events, sent):
    words = Words()
    assert "".join(words.take(each) for each in (BEGUN, *events)) == sent


@pytest.mark.parametrize(
    ("events", "sent"),
    [
        ([delta("b"), delta("c"), whole("abc")], "abc"),
        ([delta("b"), AGAIN, delta("x"), whole("xy"), BEGUN, delta("a"), whole("ab")], "xy\n\nab"),
        ([whole("a"), delta("c"), whole("bc")], "a\n\nbc"),
    ],
)
def test_who_comes_in_the_middle_of_a_turn_gets_its_words_whole(events, sent):
    words = Words()
    assert "".join(words.take(each) for each in events) == sent


@pytest.mark.parametrize(
    ("events", "end", "rest"),
    [
        ([whole("ab")], "ab", ""),
        ([whole("a", StopReason.LENGTH), whole("b")], "ab", ""),
        ([whole("ab")], "ab\n\nStopped.", "\n\nStopped."),
        ([whole("ab")], "Stopped.", "\n\nStopped."),
        ([], "Stopped.", "Stopped."),
        ([whole("ab")], "", ""),
    ],
)
def test_what_is_left_for_the_end(events, end, rest):
    words = Words()
    for each in events:
        words.take(each)
    assert words.rest(end) == rest


async def test_silence_is_bridged_and_failures_come_through():
    async def slow():
        yield 1
        await asyncio.sleep(0.1)
        yield 2
        raise ValueError("the end")

    seen = []
    with pytest.raises(ValueError, match="the end"):
        await collect(with_pauses(slow(), 0.03), seen)

    assert [each for each in seen if each] == [1, 2]
    assert None in seen


async def collect(source, seen):
    async for each in source:
        seen.append(each)


async def test_a_reader_that_leaves_ends_the_source():
    ended = asyncio.Event()

    async def endless():
        try:
            while True:
                yield 1
        finally:
            ended.set()

    source = with_pauses(endless())
    assert await anext(source) == 1
    await source.aclose()
    assert ended.is_set()


async def test_events_end_when_their_server_does():
    over = asyncio.Event()

    async def endless():
        yield 1
        await asyncio.Event().wait()

    source = with_pauses(endless(), ended=over)
    assert await anext(source) == 1
    asyncio.get_running_loop().call_later(0.05, over.set)
    async with asyncio.timeout(5):
        assert [each async for each in source if each] == []


async def test_a_failure_comes_through_also_where_a_server_may_end():
    async def broken():
        yield 1
        raise ValueError("the end")

    with pytest.raises(ValueError, match="the end"):
        await collect(with_pauses(broken(), ended=asyncio.Event()), [])


def test_odd_text_can_be_written():
    assert written({"a": "\ud800"}) == b'{"a": "\\ud800"}'
    assert event({"a": 1}, name="x", number=3) == b'id: 3\nevent: x\ndata: {"a":1}\n\n'
