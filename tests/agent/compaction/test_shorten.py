"""What one compaction does: in which order, and when it is not worth it."""

from dataclasses import replace

from hermes_agent.agent.compaction.compactor import Room
from hermes_agent.agent.compaction.shorten import MOST_PORTIONS, Shortener
from hermes_agent.core.clock import RandomIds
from hermes_agent.core.events import Compacted, Notice
from hermes_agent.core.messages import Role
from hermes_agent.providers.demo.script import Call, Heard, Say
from tests.agent.compaction.harness import Small, Window, small
from tests.agent.harness import Call as Asked, interrupted

KEPT: list[str] = []


def shortener(*writers: Window) -> Shortener:
    async def found() -> tuple[Window, ...]:
        return writers

    async def keep(text: str) -> str:
        KEPT.append(text)
        return f"/kept/{len(KEPT)}"

    KEPT.clear()
    return Shortener(seconds=5.0, writers=found, tail=None, deadline=None, ids=RandomIds(), keep=keep)


def reads(heard: Heard) -> object:
    return Call("read", {"n": heard.turn}) if heard.last.role is Role.USER else Say("Read.")


async def shortened(harness: Small, room: Room, *writers: Window, focus: str = "") -> Compacted | None:
    async with harness.hermes.holding(harness.session) as journal:
        await shortener(*writers).shorten(journal.session, journal, room, cause="command", focus=focus)
    made = [entry.event for entry in await harness.log() if isinstance(entry.event, Compacted)]
    return made[-1] if made else None


async def test_old_results_are_pruned_before_a_model_is_asked(tmp_path):
    harness, writer = small(tmp_path, reads, window=1_000_000), Window(lambda heard: Say("record"))
    async with harness.open():
        for _ in range(10):
            await harness.say("Look")
        event = await shortened(harness, Room(limit=4000, target=2500, tail=400, head=100), writer)

    assert event.strategy == "prune"
    assert writer.requests == []
    assert event.after <= 2500


async def test_a_focus_is_told_to_the_writer(tmp_path):
    harness, writer = small(tmp_path, reads, window=1_000_000), Window(lambda heard: Say("record"))
    async with harness.open():
        for _ in range(10):
            await harness.say("Look")
        event = await shortened(harness, Room(limit=4000, target=2500, tail=400, head=100), writer, focus="the prices")

    assert event.strategy == "summary"
    assert "the prices" in writer.requests[0].messages[0].text


async def test_a_conversation_too_long_for_its_writer_is_told_in_portions_of_which_there_are_few(tmp_path):
    harness = small(tmp_path, lambda heard: Say("word " * 2000), window=1_000_000)
    writer = Window(lambda heard: Say("record"), window=600)
    async with harness.open():
        for _ in range(12):
            await harness.say("Talk")
        event = await shortened(harness, Room(limit=30_000, target=9_000, tail=3_000, head=100), writer)

    assert event.strategy == "summary"
    assert 1 < len(writer.requests) <= MOST_PORTIONS + 1


async def test_nothing_is_shortened_while_a_call_is_open(tmp_path):
    harness = small(tmp_path, reads)
    async with harness.open():
        await interrupted(harness, Asked("read", {}))
        assert await shortened(harness, Room(limit=10, target=5, tail=2, head=1)) is None


async def test_what_would_gain_little_is_left_as_it_is(tmp_path):
    harness = small(tmp_path, lambda heard: Say("Hi."))
    async with harness.open():
        await harness.say("Hello")
        assert await shortened(harness, Room(limit=100_000, target=50_000, tail=25_000, head=100)) is None


async def test_what_a_note_replaces_is_told_first_without_the_words_of_tools(tmp_path):
    harness, told = small(tmp_path, reads, window=1_000_000), []
    made = replace(
        shortener(Window(lambda heard: Say("The record of it."))),
        redact=lambda text: text.replace("s3cret", "[redacted]"),
        leaving=lambda session, text: told.append((session, text)),
    )
    room = Room(limit=4000, target=2500, tail=400, head=100)
    async with harness.open():
        for _ in range(2):
            for number in range(10):
                await harness.say(f"Look at {number}, s3cret")
            async with harness.hermes.holding(harness.session) as journal:
                assert await made.shorten(journal.session, journal, room, cause="command", focus="x")

    first, second = told
    assert first[0] == harness.session
    assert "- person: Look at 3, [redacted]" in first[1]
    assert "(used read)" in first[1]
    assert "A line of a file" not in first[1]
    assert "The record of it" not in second[1]


async def test_what_is_only_pruned_is_not_told(tmp_path):
    harness, told = small(tmp_path, reads, window=1_000_000), []
    async with harness.open():
        for _ in range(10):
            await harness.say("Look")
        made = replace(shortener(), leaving=lambda *words: told.append(words))
        async with harness.hermes.holding(harness.session) as journal:
            room = Room(limit=4000, target=2500, tail=400, head=100)
            assert await made.shorten(journal.session, journal, room, cause="command")

    assert told == []


async def test_a_long_message_that_is_dropped_is_kept_in_a_file_and_both_sides_are_told(tmp_path):
    harness, writer = small(tmp_path, lambda heard: Say("Hi."), window=1_000_000), Window(lambda heard: Say("record"))
    long, more = "(Read this) " + "word " * 2_000, "More " * 4_000
    room = Room(limit=4000, target=2500, tail=400, head=100)
    async with harness.open():
        await harness.say("Hello")
        await harness.say("Before (9 bytes, kept whole in `/other`. Read it)")
        await harness.say(long)
        await harness.say("And?")
        event = await shortened(harness, room, writer)
        first = list(KEPT)
        await harness.say(more)
        await harness.say("And?")
        again = await shortened(harness, room, writer)
        told = [entry.event.text for entry in await harness.log() if isinstance(entry.event, Notice)]

    assert (first, KEPT) == ([long], [more])
    (line,) = (each for each in event.note.text.splitlines() if each.endswith("kept whole in `/kept/1`"))
    assert line.startswith('- 10,012 characters that begin "Read this word word')
    assert "- 9 bytes, kept whole in `/other`" in event.note.text.splitlines()
    assert told[0] == (
        "To make room in the model's window, a long message of yours (10,012 characters) is now a summary to it. All "
        "of it stays in the conversation, and in a file that the model can read."
    )
    assert len(told) == 2
    assert "- 9 bytes, kept whole in `/other`" in again.note.text.splitlines()


async def test_where_many_files_are_named_the_newest_have_room(tmp_path):
    harness, writer = small(tmp_path, lambda heard: Say("Hi."), window=1_000_000), Window(lambda heard: Say("record"))
    async with harness.open():
        for number in range(100):
            await harness.say(f"({number} bytes, kept whole in `/a/rather/long/name/of/a/file/{number}`)")
        event = await shortened(harness, Room(limit=4000, target=2500, tail=100, head=10), writer)

    section = event.note.text.partition("## Whole in files")[2].splitlines()[1:-1]
    assert 5 < len(section) < 40
    assert section[0].startswith("- 9")
    assert not any("/file/1`" in line for line in section)
