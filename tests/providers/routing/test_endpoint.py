"""One line: the row before the request, the size of a question, what a failed attempt took."""

import time
from dataclasses import replace

import pytest

from hermes_agent.core.errors import TimedOut
from hermes_agent.core.messages import ModelRequest, Prefix, Reply, said
from hermes_agent.core.shape import first_change
from hermes_agent.providers.demo.script import Say
from hermes_agent.providers.routing.endpoint import CacheShape
from tests.providers.asking import DIALECTS, talking


async def test_a_further_attempt_has_its_own_row():
    async with talking(DIALECTS[0], [Say("Hi")]) as talk:
        line = talk.broker._router.primary
        plan = line.plan(talk.request())
        items = [item async for item in line.attempt(plan, 3)]
    assert isinstance(items[-1], Reply)
    assert [row.call_id for row in talk.book.opened] == [row.call_id for row in talk.book.settled] == ["call1.3"]


async def test_an_attempt_after_the_deadline_is_not_made_and_has_no_row():
    async with talking(DIALECTS[0], [Say("Hi")]) as talk:
        line = talk.broker._router.primary
        plan = line.plan(talk.request(deadline=time.monotonic() - 1))
        with pytest.raises(TimedOut, match="was not asked"):
            await anext(line.attempt(plan, 1))
    assert talk.server.exchanges == talk.book.opened == []


async def test_a_size_can_be_asked_without_keeping_the_conversation():
    async with talking(DIALECTS[0], []) as talk:
        line = talk.broker._router.primary
        assert line.size(talk.request()) == line.plan(talk.request()).tokens
        talk.say("word " * 4_000)
        assert line.size(talk.request()) > 4_000
        assert len(line._compilers) == 1


REQUEST = ModelRequest(
    call_id="c",
    session="s",
    run="r",
    turn=1,
    purpose="chat",
    prefix=Prefix(system="", tools=(), hash=""),
    messages=(),
)


def test_a_conversation_that_grows_keeps_its_hashes_whoever_computes_them():
    messages = [said(f"{number}") for number in range(5)]
    trail = CacheShape()
    before = trail.shape(replace(REQUEST, messages=messages[:3]))
    after = trail.shape(replace(REQUEST, messages=messages))
    assert first_change(before, after) == ""
    assert CacheShape().shape(replace(REQUEST, messages=messages)) == after


def test_a_message_that_changed_is_found_and_what_comes_back_too():
    messages = [said(f"{number}") for number in range(5)]
    trail = CacheShape()
    before = trail.shape(replace(REQUEST, messages=messages))
    other = [*messages[:2], said("other"), *messages[3:]]
    assert first_change(before, trail.shape(replace(REQUEST, messages=other))) == "message 3"
    assert trail.shape(replace(REQUEST, messages=messages)) == before
