"""The one writer: what is committed is shown, in order, and a failure ends it."""

import asyncio

import pytest

from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import Session
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import DiskFull, LogBehind, StoreError
from hermes_agent.core.events import Notice, ToolProgress
from hermes_agent.host.tasks import spawn
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, Piece


@pytest.fixture
async def desk(tmp_path):
    """A journal under a lease, and what it showed."""
    async with Harness(tmp_path, ScriptedModel([])).open() as harness:
        lease = await harness.store.lanes.hold(harness.session, "cli")
        shown = []
        session = Session(id=harness.session)
        yield (
            Journal(harness.store, lease, session, clock=SystemClock(), show=shown.append, spawn=spawn),
            shown,
            harness,
        )
        await harness.store.lanes.release(lease)


def progress(text: str) -> ToolProgress:
    return ToolProgress(call_id="c", tool="t", text=text)


def texts(shown) -> list[str]:
    return [seen.event.text for seen in shown]


async def test_what_is_posted_is_in_the_view_at_once_and_shown_when_it_is_durable(desk):
    journal, shown, harness = desk
    journal.post(Notice(text="one"))
    journal.post(Notice(text="two"))

    assert (journal.session.number, shown) == (2, [])
    await journal.settled()
    assert texts(shown) == ["one", "two"]
    assert [entry.number for entry in await harness.log()] == [1, 2]


async def test_live_events_keep_their_place_between_durable_ones(desk):
    journal, shown, _ = desk
    journal.live(progress("first"))
    journal.post(Notice(text="one"))
    journal.live(progress("between"))
    journal.post(Notice(text="two"))
    await journal.settled()
    journal.live(progress("last"))

    assert texts(shown) == ["first", "one", "between", "two", "last"]
    assert [seen.number for seen in shown] == [0, 1, 1, 2, 2]


async def test_a_live_event_alone_needs_no_commit(desk):
    journal, shown, harness = desk
    journal.live(progress("x"))
    await journal.settled()

    assert texts(shown) == ["x"]
    assert await harness.log() == []


async def test_a_live_event_that_comes_while_a_commit_is_under_way_is_shown_after_it(desk):
    journal, shown, harness = desk
    journal.post(Notice(text="one"))
    async with asyncio.TaskGroup() as group:
        group.create_task(journal.settled())
        await asyncio.sleep(0)  # it begins to wait
        await asyncio.sleep(0)  # the commit begins
        journal.live(progress("after"))

    assert texts(shown) == ["one", "after"]
    assert len(await harness.log()) == 1


async def test_what_belongs_together_is_committed_together_or_not_at_all(desk):
    journal, shown, harness = desk

    async def fail(tx):
        raise DiskFull("There is no room left.")

    with pytest.raises(DiskFull):
        await journal.commit(Notice(text="one"), changes=[fail])

    assert (shown, await harness.log()) == ([], [])


async def test_after_a_failure_every_call_says_so(desk):
    journal, shown, _ = desk

    async def fail(tx):
        raise DiskFull("There is no room left.")

    with pytest.raises(DiskFull):
        await journal.commit(changes=[fail])
    with pytest.raises(DiskFull):
        journal.post(Notice(text="two"))
    with pytest.raises(DiskFull):
        await journal.settled()
    assert shown == []


async def test_a_defect_in_a_change_ends_the_writing_too(desk, caplog):
    journal, _, harness = desk

    async def fail(tx):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await journal.commit(Notice(text="one"), changes=[fail])
    with pytest.raises(StoreError, match="could not be written"):
        journal.post(Notice(text="two"))
    assert await harness.log() == []


async def test_the_view_is_not_ahead_of_the_log_when_a_reply_is_acted_upon(tmp_path):
    """A call that does more than read begins when the reply that asked for it is durable."""
    found = []

    async def look(arguments, context):
        found.extend(await harness.kinds())
        return "ok"

    change = Piece("change", look, Effect.KEYED)
    async with Harness(tmp_path, ScriptedModel([Call("change"), Say("Done.")]), (change,)).open() as harness:
        await harness.say("Go")

        assert found[-2:] == ["replied", "tool_started"]


async def test_what_is_shown_during_a_commit_comes_after_it_and_needs_none_of_its_own(desk):
    journal, shown, harness = desk

    async def change(tx):
        journal.live(progress("meanwhile"))

    await journal.commit(Notice(text="one"), changes=[change])
    await journal.settled()

    assert texts(shown) == ["one", "meanwhile"]
    assert len(await harness.log()) == 1


async def test_what_the_database_lost_of_a_run_is_put_back_with_all_that_belongs_to_it(desk):
    journal, shown, harness = desk
    done = []
    await journal.commit(Notice(text="one"))
    for text in ("two", "three"):
        await journal.commit(Notice(text=text), changes=[noting(done, text)])
    for lost in ("DELETE FROM entry WHERE number > 1", "UPDATE lane SET head = 1"):
        await harness.store.write(lambda tx, lost=lost: tx.run(lost))

    await journal.commit(Notice(text="four"), changes=[noting(done, "four")])

    texts_kept = [(entry.number, entry.event.text) for entry in await harness.log()]
    assert texts_kept[:4] == [(1, "one"), (2, "two"), (3, "three"), (4, "four")]
    assert texts_kept[4][1].startswith("The database had lost the log from entry 2 on")
    assert done == ["two", "three", "two", "three", "four"]
    assert [seen.number for seen in shown] == [1, 2, 3, 4, 5]


async def test_what_an_earlier_run_wrote_and_the_database_lost_is_named_and_nothing_is_written(desk):
    journal, shown, harness = desk
    await journal.commit(*(Notice(text=str(number)) for number in range(3)))
    later = Journal(harness.store, journal._lease, journal.session, clock=SystemClock(), show=shown.append, spawn=spawn)
    for lost in ("DELETE FROM entry WHERE number > 1", "UPDATE lane SET head = 1"):
        await harness.store.write(lambda tx, lost=lost: tx.run(lost))

    with pytest.raises(LogBehind, match="entry 4 was next and its log ends at 1"):
        await later.commit(Notice(text="four"))

    assert [entry.number for entry in await harness.log()] == [1]


def noting(done, text):
    async def change(tx):
        done.append(text)

    return change
