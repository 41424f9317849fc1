"""A review costs the conversation no time: the next reply comes as fast beside a review as without one."""

import asyncio
import statistics
import time

import pytest

from hermes_agent.core.events import RunEnded
from hermes_agent.core.messages import TextDelta
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say
from tests.app.place import Place
from tests.learning.harness import Script, learning_place, looks

ROUNDS = 12
NOISE = 0.05
"""Seconds that one reply may differ from another without meaning anything."""
SLOW = Answer(pieces=(Call("skills_list", {"query": "again"}),), pace=Pace(first=0.05, between=0.01))


async def tokens(here: Place, words: str) -> tuple[float, float]:
    """Seconds until the first and the last token of a reply."""
    began, first = time.perf_counter(), 0.0
    after = await here.tell(words)
    async for seen in here.runtime.hermes.follow(here.record.id, after):
        if isinstance(seen.event, TextDelta) and not first:
            first = time.perf_counter() - began
        if isinstance(seen.event, RunEnded):
            break
    return first, time.perf_counter() - began


def answer(heard: Heard):
    return [Say("Here is the answer, in a few words.")] if heard.turn > 2 else looks(3)[heard.turn]


@pytest.mark.slow
async def test_a_reply_beside_a_review_is_as_fast_as_one_without(tmp_path):
    script = Script(answer, clean=lambda _: SLOW)
    async with learning_place(tmp_path, script, works=True) as here:
        learner = here.runtime.learner
        learner.works = False
        await here.say("Look around")
        alone, beside = [], []
        for number in range(ROUNDS):
            await learner.jobs.close()
            alone.append(await tokens(here, f"Question {number}"))
            asked = len(script.reviews)
            learner.jobs.ring()
            while len(script.reviews) == asked:
                await asyncio.sleep(0.005)
            beside.append(await tokens(here, f"Question {number}, again"))
        reviews = len(script.reviews)
        await learner.jobs.close()

    assert reviews >= ROUNDS  # There was a review under way.
    for which in (0, 1):
        without, with_ = (statistics.median(each[which] for each in times) for times in (alone, beside))
        assert with_ < without + NOISE, f"{with_:.3f} s beside a review, {without:.3f} s without"
