"""Drafts show that a run works, at the platform's pace, and never instead of its reply."""

import asyncio
from pathlib import Path

from hermes_agent.core.effects import Effect
from hermes_agent.core.events import Outcome, RunEnded, RunStarted, Seen, ToolEnded, ToolStarted
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.messages import said
from hermes_agent.core.model import TextDelta
from hermes_agent.core.outbound import SlotState
from hermes_agent.gateway.channel import Abilities
from hermes_agent.gateway.drafts import KNOWN, Drafts, Known
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.doubles.platform import Trouble
from tests.gateway.house import House, eventually, house

TO = Conversation(platform="fake", chat="1")


def seen(event: object, session: str = "s", run: str = "r") -> Seen:
    return Seen(session=session, number=1, run=run, at=1.0, event=event)


def begin(here: House, *, streams: bool = True) -> Drafts:
    drafts = here.gateway.drafts
    drafts.know("s", Known(to=TO, line=here.gateway.known["fake"], streams=streams))
    drafts.overhear(seen(RunStarted()))
    return drafts


def end(drafts: Drafts) -> None:
    drafts.overhear(seen(RunEnded(outcome=Outcome.ANSWERED, text="", turns=1)))


async def test_words_and_what_the_run_does_are_one_message(tmp_path: Path):
    async with house(tmp_path, []) as here:
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Let me see.")))
        await eventually(lambda: bool(here.platform.chats.messages))
        drafts.overhear(seen(ToolStarted(turn=1, call_id="c", tool="t", effect=Effect.READS, summary="terminal: ls")))
        await eventually(lambda: "⚙ terminal: ls" in here.platform.chats.of("1")[0].text)
        ended = ToolEnded(turn=1, call_id="c", tool="t", message=said(""), is_error=False, seconds=0.1)
        drafts.overhear(seen(ended))
        await eventually(lambda: here.platform.chats.of("1")[0].text == "Let me see.")
        end(drafts)

        assert len(here.platform.chats.messages) == 1
        assert not drafts._drafts


async def test_a_run_without_words_shows_that_it_works(tmp_path: Path):
    async with house(tmp_path, []) as here:
        drafts = begin(here)
        await eventually(lambda: here.platform.chats.typing == ["1"])
        await asyncio.sleep(0.5)
        end(drafts)

        assert here.platform.chats.typing == ["1"]
        assert not here.platform.chats.messages


async def test_where_nothing_can_be_changed_nothing_is_shown_before_its_time(tmp_path: Path):
    platform = FakePlatform(Abilities(longest_message=300))
    async with house(tmp_path, [], platform=platform) as here:
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Hello")))
        await asyncio.sleep(0.8)
        end(drafts)

        assert not here.platform.chats.messages


async def test_a_silent_reply_is_not_shown_by_its_draft(tmp_path: Path):
    async with house(tmp_path, []) as here:
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="[SIL")))
        await asyncio.sleep(0.8)
        end(drafts)

        assert not here.platform.chats.messages


async def test_a_draft_whose_answer_was_lost_is_not_sent_again(tmp_path: Path):
    async with house(tmp_path, []) as here:
        here.platform.chats.order(Trouble.DEAF, "send")
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Hello")))
        await eventually(lambda: bool(here.platform.chats.messages))
        drafts.overhear(seen(TextDelta(text=" there")))
        await asyncio.sleep(0.6)
        end(drafts)

        slot = await here.store.outbox.find("s:r")
        assert slot is not None
        assert slot.state is SlotState.UNSURE
        assert len(here.platform.chats.messages) == 1


async def test_a_draft_that_was_refused_is_tried_again(tmp_path: Path):
    async with house(tmp_path, []) as here:
        here.platform.chats.order(Trouble.BROKEN, "send")
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Hello")))

        await eventually(lambda: bool(here.platform.chats.messages))
        end(drafts)


async def test_a_session_that_nobody_told_of_has_no_draft():
    drafts = Drafts(runtime=None)
    drafts.overhear(seen(RunStarted()))
    drafts.overhear(seen(TextDelta(text="Hello")))

    assert not drafts._drafts
    await drafts.settled("s:r")


def test_places_are_not_remembered_without_end():
    drafts = Drafts(runtime=None)
    for number in range(KNOWN + 10):
        drafts.know(str(number), Known(to=TO, line=None, streams=True))

    assert len(drafts._known) == KNOWN
