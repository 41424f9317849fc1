"""Drafts show the words of the run that is under way, each once."""

import asyncio
from pathlib import Path

from hermes_agent.core.events import Replied, RunStarted, Seen
from hermes_agent.core.messages import Message, Retrying, Role, StopReason, Text, TextDelta, Usage
from hermes_agent.providers.demo.script import Answer, Pace, Say
from tests.gateway.harness import eventually, harness
from tests.gateway.test_streaming import begin, end, seen, shows


def replied(text: str) -> Seen:
    return seen(
        Replied(
            turn=1,
            call_id="m",
            message=Message(role=Role.ASSISTANT, parts=(Text(text=text),)),
            stop=StopReason.LENGTH,
            usage=Usage(),
            provider="p",
            model="m",
            cost=None,
            seconds=0.1,
        )
    )


async def test_a_run_that_was_left_without_an_end_shows_nothing_beneath_the_next(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        drafts = begin(here, run="left")
        drafts.overhear(seen(TextDelta(text="Old words."), run="left"))
        drafts.overhear(seen(RunStarted(), run="next"))
        drafts.overhear(seen(TextDelta(text="New words."), run="next"))
        await eventually(lambda: shows(here, "New words."))
        await asyncio.sleep(0.5)
        end(drafts, run="next")

        assert not shows(here, "Old words.")
        assert await here.store.outbox.find("s:left") is None


async def test_words_of_an_earlier_run_are_not_shown_as_those_of_the_one_under_way(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        drafts = begin(here, run="next")
        drafts.overhear(seen(TextDelta(text="Old words."), run="left"))
        end(drafts, "Old words.", run="left")
        drafts.overhear(seen(TextDelta(text="New words."), run="next"))
        await eventually(lambda: shows(here, "New words."))

        assert not shows(here, "Old words.")
        end(drafts, "New words.", run="next")


async def test_words_of_a_request_that_is_made_again_are_not_shown_twice(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="First.")))
        drafts.overhear(replied("First."))
        drafts.overhear(seen(TextDelta(text=" Secon")))
        drafts.overhear(seen(Retrying(attempt=1, reason="lost", delay=0.0)))
        drafts.overhear(seen(TextDelta(text=" Second.")))
        await eventually(lambda: shows(here, "Second."))
        end(drafts, "First. Second.")

        assert shows(here, "First. Second.")


async def test_who_was_away_for_too_long_changes_nothing_that_another_one_may_have_finished(tmp_path: Path):
    slow = Answer(pieces=(Say("Word upon word upon word. " * 40),), pace=Pace(between=0.1))
    async with harness(tmp_path, [slow]) as here:
        await here.platform.say("Tell me a story")
        await here.shown()
        workers = here.store.workers
        workers.generation += 1  # As after a heartbeat that found this worker given up.
        await asyncio.sleep(0.3)
        before = here.platform.chats.of("1")[0].text

        await asyncio.sleep(1.0)

        assert here.platform.chats.of("1")[0].text == before
        workers.generation -= 1
        await here.rest()
