"""Providers that fail in every way there is: each request ends in time, with the right reply or one typed failure."""

import random

import pytest

from bench.chaos import SETTINGS, ask, ends_of, shown
from hermes_agent.core.messages import Continuing, Retrying, TextDelta
from hermes_agent.providers.demo.script import Heard
from hermes_agent.testing.faults import Status
from hermes_agent.testing.scripted import Step
from tests.providers.asking import chained

REQUESTS = 100  # `python -m bench chaos`: 1,000


@pytest.mark.timeout(120)
async def test_every_request_ends_in_time_with_the_right_reply_or_one_typed_failure():
    ends = await ends_of(REQUESTS, seed=20261121)

    assert ends[""] > REQUESTS / 2, ends
    assert len(ends) > 1, "nothing failed: the faults do not strike"


async def test_failures_of_one_provider_never_touch_the_keys_of_another():
    chance = random.Random(7)

    def failing(_: Heard) -> Step:
        return Status(chance.choice((401, 402, 429)))

    async with chained(lambda _: Status(503), failing, settings=SETTINGS) as talk:
        for number in range(10):
            failure, _, _ = await ask(talk, number)
            assert failure
        rests = talk.cool_downs.kept.values()
    assert all(not rest.credential for rest in rests if rest.provider == "openai")
    assert any(rest.credential == "KEY" for rest in rests if rest.provider == "anthropic")


def test_a_continued_reply_counts_as_one():
    first, rest = TextDelta(text="one "), TextDelta(text="two")
    assert shown([first, Continuing(reason="x", attempt=1, delay=0.0), rest]) == "one two"
    assert shown([first, Retrying(reason="x", attempt=1, delay=0.0), rest]) == "two"
