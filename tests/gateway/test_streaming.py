"""Drafts show that a run works, at the platform's pace, and never instead of its reply."""

import asyncio
from dataclasses import replace
from pathlib import Path

from hermes_agent.core.chat import Content, Conversation, Letter, SlotState
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import DatabaseUnreachable, DiskFull
from hermes_agent.core.events import (
    Answered,
    Asked,
    Notice,
    Outcome,
    RunEnded,
    RunStarted,
    Seen,
    ToolEnded,
    ToolStarted,
)
from hermes_agent.core.messages import TextDelta, said
from hermes_agent.gateway.channel import Abilities
from hermes_agent.gateway.streaming import KNOWN, Known, Streaming
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.platform import Trouble
from tests.gateway.harness import Harness, eventually, harness

TO = Conversation(platform="fake", chat="1")


def seen(event: object, session: str = "s", run: str = "r") -> Seen:
    return Seen(session=session, number=1, run=run, at=1.0, event=event)


def begin(here: Harness, *, streams: bool = True, to: Conversation = TO, run: str = "r") -> Streaming:
    drafts = here.gateway.drafts
    here.gateway.runtime.hermes.runs = lambda _: True
    drafts.know("s", Known(to=to, line=here.gateway.known["fake"], streams=streams))
    drafts.overhear(seen(RunStarted(), run=run))
    return drafts


def end(drafts: Streaming, text: str = "", *, run: str = "r") -> None:
    drafts.overhear(seen(RunEnded(outcome=Outcome.ANSWERED, text=text, turns=1), run=run))


def tool(summary: str, call: str = "c") -> Seen:
    return seen(ToolStarted(turn=1, call_id=call, tool="t", effect=Effect.READS, summary=summary))


def shows(here: Harness, text: str) -> bool:
    return any(text in shown.text for shown in here.platform.chats.of("1"))


async def sent(here: Harness, run: str) -> bool:
    slot = await here.store.outbox.find(f"s:{run}")
    return slot is not None and slot.state is SlotState.SENT


async def test_words_and_what_the_run_does_are_one_message(tmp_path: Path):
    async with harness(tmp_path, []) as here:
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


async def test_for_whom_a_call_waits_is_shown_until_the_call_ends(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Let me see.")))
        drafts.overhear(tool("memory: add"))
        drafts.overhear(seen(Notice(text="Waiting: a.lock is locked.", level="warning", live=True)))
        await eventually(lambda: shows(here, "Waiting: a.lock is locked."))
        ended = ToolEnded(turn=1, call_id="c", tool="t", message=said(""), is_error=False, seconds=0.1)
        drafts.overhear(seen(ended))
        await eventually(lambda: here.platform.chats.of("1")[0].text == "Let me see.")
        end(drafts)


async def test_a_run_without_words_shows_that_it_works(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        drafts = begin(here)
        await eventually(lambda: here.platform.chats.typing == ["1"])
        await asyncio.sleep(0.5)
        end(drafts)

        assert here.platform.chats.typing == ["1"]
        assert not here.platform.chats.messages


async def test_where_nothing_can_be_changed_nothing_is_shown_before_its_time(tmp_path: Path):
    platform = FakePlatform(Abilities(longest_message=300))
    async with harness(tmp_path, [], platform=platform) as here:
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Hello")))
        await asyncio.sleep(0.8)
        end(drafts)

        assert not here.platform.chats.messages


async def test_a_silent_reply_is_not_shown_by_its_draft(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="[SIL")))
        await asyncio.sleep(0.8)
        end(drafts)

        assert not here.platform.chats.messages


async def test_a_draft_whose_answer_was_lost_is_not_sent_again(tmp_path: Path):
    async with harness(tmp_path, []) as here:
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
    async with harness(tmp_path, []) as here:
        here.platform.chats.order(Trouble.BROKEN, "send")
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Hello")))

        await eventually(lambda: bool(here.platform.chats.messages))
        end(drafts)


async def test_a_draft_waits_for_what_was_said_before(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        here.platform.chats.order(Trouble.BROKEN, "send")
        letter = Letter(key="earlier", to=TO, content=Content(text="An earlier reply."))
        await here.store.write(lambda tx: here.store.outbox.put(tx, letter))
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Let me see.")))

        await eventually(lambda: shows(here, "Let me see."))
        end(drafts)

        assert [shown.text for shown in here.platform.chats.of("1")] == ["An earlier reply.", "Let me see."]


async def test_what_a_run_does_is_one_line_also_before_its_first_words(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        drafts = begin(here)
        for summary in ("terminal: ls", "read_file: a"):
            drafts.overhear(tool(summary))
            await eventually(lambda summary=summary: shows(here, f"⚙ {summary}"))
        end(drafts)

        assert len(here.platform.chats.messages) == 1


async def test_of_calls_side_by_side_the_latest_is_shown_and_how_many_there_are_besides(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        drafts = begin(here)
        for call in ("a", "b"):
            drafts.overhear(tool(f"terminal: {call}", call))
        await eventually(lambda: shows(here, "⚙ terminal: b (+1)"))
        ended = ToolEnded(turn=1, call_id="b", tool="t", message=said(""), is_error=False, seconds=0.1)
        drafts.overhear(seen(ended))
        await eventually(lambda: shows(here, "⚙ terminal: a"))
        end(drafts)

        assert len(here.platform.chats.messages) == 1


async def test_while_a_person_is_asked_nothing_is_shown(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        drafts = begin(here)
        drafts.overhear(tool("terminal: rm"))
        drafts.overhear(seen(Asked(question="q", text="May I?", choices=(), purpose="approval")))
        await asyncio.sleep(0.8)
        assert not here.platform.chats.messages
        assert not here.platform.chats.typing

        drafts.overhear(seen(Answered(question="q", answer="once", principal="fake:7")))
        await eventually(lambda: shows(here, "⚙ terminal: rm"))
        end(drafts)


async def test_a_draft_of_a_run_that_says_nothing_in_the_end_is_taken_away(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        drafts = begin(here)
        drafts.overhear(tool("terminal: ls"))
        await eventually(lambda: bool(here.platform.chats.messages))
        end(drafts, "[SILENT]")

        await eventually(lambda: not here.platform.chats.messages)


async def test_a_draft_that_a_person_deleted_is_not_changed_again(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Hello")))
        await eventually(lambda: bool(here.platform.chats.messages))
        here.platform.chats.messages.clear()
        drafts.overhear(seen(TextDelta(text=" there")))
        await eventually(lambda: here.platform.chats.calls["edit"] == 1)
        drafts.overhear(seen(TextDelta(text=", Ann")))
        await asyncio.sleep(0.5)
        end(drafts)

        assert here.platform.chats.calls["edit"] == 1


async def test_a_busy_platform_is_let_alone_for_as_long_as_it_asks(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        here.platform.chats.retry_after = 30
        here.platform.chats.order(Trouble.BUSY, "send")
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Hello")))
        await eventually(lambda: here.platform.chats.calls["send"] == 1)
        await asyncio.sleep(0.5)
        end(drafts)

        assert here.platform.chats.calls["send"] == 1
        assert here.gateway.known["fake"].pacer.reserve(TO) > here.gateway.runtime.clock.monotonic() + 25


DRAFTS = Abilities(longest_message=300, draft=30.0, edit=True)


async def test_where_words_are_shown_without_a_message_the_reply_is_the_one_message(tmp_path: Path):
    async with harness(tmp_path, [], platform=FakePlatform(DRAFTS)) as here:
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Let me see.")))
        await eventually(lambda: here.platform.chats.drafts.get("1") == ["Let me see."])
        drafts.overhear(tool("terminal: ls"))
        await eventually(lambda: "⚙ terminal: ls" in here.platform.chats.drafts["1"][-1])
        await asyncio.sleep(0.5)
        end(drafts)

        assert here.platform.chats.calls["draft"] == 2  # The same words are not shown again before they fade.
        assert not here.platform.chats.messages
        assert await here.store.outbox.find("s:r") is None


async def test_words_without_a_message_are_shown_again_before_they_fade(tmp_path: Path):
    platform = FakePlatform(Abilities(longest_message=300, draft=0.5))
    async with harness(tmp_path, [], platform=platform) as here:
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Let me see.")))
        await eventually(lambda: here.platform.chats.drafts.get("1") == ["Let me see."] * 3)
        end(drafts)


async def test_a_chat_that_takes_no_words_without_a_message_has_them_in_one_and_the_log_says_so_once(
    tmp_path: Path,
):
    async with harness(tmp_path, [], platform=FakePlatform(DRAFTS)) as here:
        here.platform.chats.order(Trouble.GONE, "draft", 2)
        for run, to in (("r", TO), ("r2", TO), ("r3", replace(TO, chat="2"))):
            drafts = begin(here, to=to, run=run)
            drafts.overhear(seen(TextDelta(text="Hello"), run=run))
            await eventually(lambda run=run: sent(here, run))
            end(drafts, run=run)
            await drafts.settled(f"s:{run}")

        assert here.platform.chats.calls["draft"] == 2
        assert here.gateway.runtime.home.log_file.read_text().count("by changing their message") == 1


async def test_in_a_group_words_are_shown_in_a_message(tmp_path: Path):
    async with harness(tmp_path, [], platform=FakePlatform(DRAFTS)) as here:
        drafts = begin(here, to=replace(TO, chat_kind="group"))
        drafts.overhear(seen(TextDelta(text="Hello")))
        await eventually(lambda: bool(here.platform.chats.messages))
        end(drafts)

        assert here.platform.chats.calls["draft"] == 0


async def test_a_run_that_has_said_nothing_types_where_words_are_shown_without_a_message(tmp_path: Path):
    async with harness(tmp_path, [], platform=FakePlatform(replace(DRAFTS, typing=5.0))) as here:
        here.platform.chats.order(Trouble.BUSY, "draft")
        drafts = begin(here)
        await eventually(lambda: here.platform.chats.typing == ["1"])
        drafts.overhear(seen(TextDelta(text="Hello")))
        await eventually(lambda: here.platform.chats.drafts.get("1") == ["Hello"])
        end(drafts)

        assert here.gateway.known["fake"].pacer.has_room(TO)  # Only the signs were held back.


async def test_a_session_that_nobody_told_of_has_no_draft():
    drafts = Streaming(runtime=None, wake=lambda: None)
    drafts.overhear(seen(RunStarted()))
    drafts.overhear(seen(TextDelta(text="Hello")))

    assert not drafts._drafts
    await drafts.settled("s:r")


def test_places_are_not_remembered_without_end():
    drafts = Streaming(runtime=None, wake=lambda: None)
    for number in range(KNOWN + 10):
        drafts.know(str(number), Known(to=TO, line=None, streams=True))

    assert len(drafts._known._kept) == KNOWN


async def test_a_run_that_was_left_without_an_end_is_not_shown_at_work_for_ever(tmp_path: Path):
    async with harness(tmp_path, [Hang()]) as here:
        await here.platform.say("Hi")
        await eventually(lambda: bool(here.gateway.drafts._drafts))
        running = next(iter(here.gateway.runtime.hermes.scheduler._running.values()))
        assert running.task is not None
        running.task.cancel()  # As where another process goes on with it.

        await eventually(lambda: not here.gateway.drafts._drafts)


async def test_a_reply_is_delivered_though_the_end_of_its_draft_could_not_be_written_at_once(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        real, failures = here.store.outbox.complete, [DiskFull("No room.")]

        async def settle(*given: object, **more: object) -> None:
            if failures:
                raise failures.pop()
            await real(*given, **more)

        here.store.outbox.complete = settle
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Let me see.")))
        await eventually(lambda: bool(here.platform.chats.messages))
        end(drafts, "Done.")
        letter = Letter(key="s:r", to=TO, content=Content(text="Done."))
        await here.store.write(lambda tx: here.store.outbox.put(tx, letter))

        await eventually(lambda: shows(here, "Done."))
        assert len(here.platform.chats.of("1")) == 1


async def test_a_draft_that_may_be_held_without_an_answer_is_given_back_for_its_reply(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        real, failures = here.store.outbox.open, [DatabaseUnreachable("away")]

        async def opened(letter: Letter) -> object:
            slot = await real(letter)
            if failures:
                raise failures.pop()
            return slot

        here.store.outbox.open = opened
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Let me see.")))
        await eventually(lambda: not failures)
        end(drafts, "Done.")
        letter = Letter(key="s:r", to=TO, content=Content(text="Done."))
        await here.store.write(lambda tx: here.store.outbox.put(tx, letter))

        await eventually(lambda: shows(here, "Done."))


async def test_a_run_that_ends_while_its_first_words_are_being_sent_has_its_reply_delivered_then(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        channel = here.gateway.known["fake"].channel
        send, begun, may = channel.send, asyncio.Event(), asyncio.Event()

        async def slow(*given: object) -> str:
            begun.set()
            await may.wait()
            return await send(*given)

        channel.send = slow
        drafts = begin(here)
        drafts.overhear(seen(TextDelta(text="Let me see.")))
        await begun.wait()
        letter = Letter(key="s:r", to=TO, content=Content(text="Done."))
        await here.store.write(lambda tx: here.store.outbox.put(tx, letter, wake=False))
        end(drafts, "Done.")
        here.gateway.delivery.wake()
        await eventually(lambda: not here.gateway.delivery._wanted.is_set())
        may.set()

        await eventually(lambda: [shown.text for shown in here.platform.chats.of("1")] == ["Done."])
