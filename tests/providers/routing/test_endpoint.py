"""One line: the row before the request, the size of a question, what a failed attempt took."""

import time

import pytest

from hermes_agent.core.errors import TimedOut
from hermes_agent.core.model import Reply
from hermes_agent.providers.demo.script import Say
from tests.providers.asking import DIALECTS, talking


async def test_a_further_attempt_has_its_own_row():
    async with talking(DIALECTS[0], [Say("Hi")]) as talk:
        line = talk.broker._relays.primary
        plan = line.plan(talk.request())
        items = [item async for item in line.attempt(plan, 3)]
    assert isinstance(items[-1], Reply)
    assert [row.call_id for row in talk.book.opened] == [row.call_id for row in talk.book.settled] == ["call1.3"]


async def test_an_attempt_after_the_deadline_is_not_made_and_has_no_row():
    async with talking(DIALECTS[0], [Say("Hi")]) as talk:
        line = talk.broker._relays.primary
        plan = line.plan(talk.request(deadline=time.monotonic() - 1))
        with pytest.raises(TimedOut, match="was not asked"):
            await anext(line.attempt(plan, 1))
    assert talk.server.exchanges == talk.book.opened == []


async def test_a_size_can_be_asked_without_keeping_the_conversation():
    async with talking(DIALECTS[0], []) as talk:
        line = talk.broker._relays.primary
        assert line.size(talk.request()) == line.plan(talk.request()).tokens
        talk.say("word " * 4_000)
        assert line.size(talk.request()) > 4_000
        assert len(line._compilers) == 1
