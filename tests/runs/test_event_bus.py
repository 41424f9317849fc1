"""Watching: every durable event once and in order, however slow the reader and wherever the run."""

import asyncio
from contextlib import aclosing

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.errors import DiskFull, HermesError
from hermes_agent.core.events import Entry, Notice, Seen, ToolProgress
from hermes_agent.runs.event_bus import READER_ROOM, EventBus


class Log:
    """A log in memory, and the bus over it."""

    def __init__(self, *, here: bool = True, room: int = READER_ROOM, glance: float = 0.5) -> None:
        self.entries: list[Entry] = []
        self.here = here
        self.looks = 0
        self.bus = EventBus(self.read, lambda session: self.here, room=room, glance=glance)

    async def read(self, session: str, after: int) -> list[Entry]:
        self.looks += 1
        await asyncio.sleep(0)
        return self.entries[after:]

    def add(self, *, shown: bool = True) -> None:
        number = len(self.entries) + 1
        event = Notice(text=str(number))
        self.entries.append(Entry(number=number, run="r", at=0.0, event=event))
        if shown:
            self.bus.publish(Seen(session="s", number=number, run="r", at=0.0, event=event))

    def live(self, text: str = "live", number: int | None = None) -> None:
        event = ToolProgress(call_id="c", tool="t", text=text)
        number = len(self.entries) if number is None else number
        self.bus.publish(Seen(session="s", number=number, run="r", at=0.0, event=event))


async def take(events, count: int) -> list[str]:
    async with asyncio.timeout(5):
        return [(await anext(events)).event.text for _ in range(count)]


def numbers(first: int, last: int) -> list[str]:
    return [str(number) for number in range(first, last + 1)]


async def test_a_reader_sees_what_was_and_what_comes():
    log = Log()
    log.add()
    async with aclosing(log.bus.watch("s")) as events:
        assert await take(events, 1) == ["1"]
        log.add()
        log.live()
        assert await take(events, 2) == ["2", "live"]


async def test_who_reads_the_log_alone_is_shown_no_live_events():
    log = Log()
    log.add()
    async with aclosing(log.bus.watch("s", live=False)) as events:
        assert await take(events, 1) == ["1"]
        log.live()
        log.add()
        assert await take(events, 1) == ["2"]


async def test_a_reader_that_comes_back_gets_what_came_after_its_number():
    log = Log()
    for _ in range(5):
        log.add()
    async with aclosing(log.bus.watch("s", after=3)) as events:
        assert await take(events, 2) == ["4", "5"]


async def test_a_slow_reader_loses_live_events_and_no_durable_one():
    log = Log()
    async with aclosing(log.bus.watch("s")) as events:
        log.add()
        assert await take(events, 1) == ["1"]
        for _ in range(READER_ROOM + 500):
            log.live()
        for _ in range(10):
            log.add()
        seen = await take(events, READER_ROOM + 9)

        assert [text for text in seen if text != "live"] == numbers(2, 11)


async def test_a_durable_event_that_had_no_room_is_not_skipped_when_the_next_one_had():
    log = Log()
    async with aclosing(log.bus.watch("s")) as events:
        log.add()
        assert await take(events, 1) == ["1"]
        for _ in range(READER_ROOM):
            log.add()
        log.add()  # no room
        assert await take(events, 3) == numbers(2, 4)
        log.add()  # room again, while the reader is still behind
        log.add()

        assert await take(events, READER_ROOM) == numbers(5, READER_ROOM + 4)


async def test_live_events_of_the_past_are_not_shown():
    log = Log()
    log.add()
    async with aclosing(log.bus.watch("s")) as events:
        assert await take(events, 1) == ["1"]
        log.live("old", number=0)
        log.live("new")

        assert await take(events, 1) == ["new"]


async def test_a_live_event_that_is_ahead_brings_what_is_missing_first():
    log = Log()
    async with aclosing(log.bus.watch("s")) as events:
        log.add()
        assert await take(events, 1) == ["1"]
        log.add(shown=False)
        log.live("ahead")

        assert await take(events, 2) == ["2", "ahead"]


async def test_a_run_in_another_process_is_seen_from_the_log():
    log = Log(here=False, glance=0.01)
    async with aclosing(log.bus.watch("s")) as events:
        log.add(shown=False)
        assert await take(events, 1) == ["1"]
        log.add(shown=False)
        assert await take(events, 1) == ["2"]


async def test_a_run_that_moves_to_another_process_is_followed_there():
    """The reader began to wait while the run was here."""
    log = Log(glance=0.01)
    async with aclosing(log.bus.watch("s")) as events:
        log.add()
        assert await take(events, 1) == ["1"]
        waiting = asyncio.ensure_future(take(events, 1))
        await asyncio.sleep(0)
        log.here = False
        log.add(shown=False)

        assert await waiting == ["2"]


async def test_the_events_end_where_nothing_more_comes_and_not_before_the_last_one():
    log = Log(here=False, glance=0.01)

    async def over() -> HermesError | None:
        if not log.entries:
            log.add(shown=False)
            log.add(shown=False)
        return HermesError("It is over.")

    async with aclosing(log.bus.watch("s", 0, over)) as events:
        assert await take(events, 2) == ["1", "2"]
        with pytest.raises(HermesError, match="It is over"):
            await take(events, 1)


async def test_while_the_run_is_here_the_log_is_left_alone():
    log = Log(glance=0.001)
    async with aclosing(log.bus.watch("s")) as events:
        waiting = asyncio.ensure_future(take(events, 1))
        while log.looks < 1:
            await asyncio.sleep(0)
        await asyncio.sleep(0.02)
        log.add()

        assert await waiting == ["1"]
        assert log.looks == 1


async def test_a_failure_is_told_after_what_came_before_it():
    log = Log()
    async with aclosing(log.bus.watch("s")) as events:
        log.add()
        assert await take(events, 1) == ["1"]
        log.add()
        log.bus.fail("s", DiskFull("There is no room left."))

        assert await take(events, 1) == ["2"]
        with pytest.raises(DiskFull):
            await take(events, 1)


async def test_a_failure_reaches_a_reader_without_room():
    log = Log()
    async with aclosing(log.bus.watch("s")) as events:
        log.add()
        assert await take(events, 1) == ["1"]
        for _ in range(READER_ROOM):
            log.add()
        log.bus.fail("s", DiskFull("There is no room left."))

        assert await take(events, READER_ROOM) == numbers(2, READER_ROOM + 1)
        with pytest.raises(DiskFull):
            await take(events, 1)


async def test_a_failure_waits_for_who_comes_after_it_unless_something_happened_since():
    log = Log()
    log.bus.fail("s", DiskFull("There is no room left."))
    async with aclosing(log.bus.watch("s")) as events:
        with pytest.raises(DiskFull):
            await take(events, 1)
    log.bus.fail("s", DiskFull("There is no room left."))
    log.add()

    async with aclosing(log.bus.watch("s")) as events:
        assert await take(events, 1) == ["1"]
        log.add()
        assert await take(events, 1) == ["2"]


async def test_who_asks_for_something_new_is_not_told_how_what_was_before_ended():
    log = Log()
    log.bus.fail("s", DiskFull("There is no room left."))
    log.bus.start_run("s")

    async with aclosing(log.bus.watch("s")) as events:
        log.add()
        assert await take(events, 1) == ["1"]


async def test_who_leaves_is_forgotten():
    log = Log()
    log.add()
    async with aclosing(log.bus.watch("s")) as one, aclosing(log.bus.watch("s")) as two:
        assert await take(one, 1) == await take(two, 1) == ["1"]
    log.add()

    assert not log.bus._readers


@given(st.lists(st.sampled_from(["add", "hidden", "live", "take", "burst"]), max_size=40), st.integers(1, 6))
def test_whatever_the_reader_misses_it_sees_every_durable_event_once_and_in_order(steps, room):
    async def play() -> None:
        log = Log(here=False, room=room, glance=0.001)
        seen: list[str] = []
        async with aclosing(log.bus.watch("s")) as events:
            log.add()
            seen += await take(events, 1)
            for step in steps:
                match step:
                    case "add":
                        log.add()
                    case "hidden":
                        log.add(shown=False)
                    case "live":
                        log.live()
                    case "burst":
                        for _ in range(room):
                            log.add()
                    case "take" if len(log.entries) > sum(text != "live" for text in seen):
                        seen += await take(events, 1)
            log.add()
            while sum(text != "live" for text in seen) < len(log.entries):
                seen += await take(events, 1)
        assert [text for text in seen if text != "live"] == numbers(1, len(log.entries))

    asyncio.run(play())
