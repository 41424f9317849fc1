"""The log: appended under the lease, read back as it was written."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings, strategies as some

from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import DatabaseTooNew, LogBehind, LostLease, StoreError
from hermes_agent.core.events import (
    Answered,
    Asked,
    Durable,
    Entry,
    MessageTaken,
    Notice,
    Outcome,
    Replied,
    RunEnded,
    RunStarted,
    ToolEnded,
    ToolStarted,
)
from hermes_agent.core.messages import Message, Role, StopReason, Text, Thinking, ToolCall, ToolResult, Usage, said
from hermes_agent.core.records import revive
from hermes_agent.store.database import Store
from hermes_agent.store.transaction import plain, written
from tests.databases import OpenAnother
from tests.store.made import QUEUE, add, append, claimed, entry, mail, session

REPLIED = Replied(
    turn=1,
    call_id="c",
    message=Message(
        role=Role.ASSISTANT,
        parts=(
            Thinking(text="hm", opaque="sig==", maker="anthropic/x"),
            Text(text="Ünïcode 🎉 \x00 \ud83d"),
            ToolCall(id="t1", name="read_file", arguments={"path": "a", "deep": {"z": [1, 2.5, None, True]}}),
        ),
    ),
    stop=StopReason.TOOL_CALLS,
    usage=Usage(input=10, output=2, cached=8),
    provider="anthropic",
    model="x",
    cost=None,
    seconds=0.25,
)
TOOL_ENDED = ToolEnded(
    turn=1,
    call_id="t1",
    tool="read_file",
    message=Message(role=Role.TOOL, parts=(ToolResult(call_id="t1", name="read_file", parts=(Text(text="x"),)),)),
    is_error=False,
    seconds=0.1,
)
EVENTS = (
    REPLIED,
    ToolStarted(turn=1, call_id="t1", tool="read_file", effect=Effect.READS, summary="read a"),
    TOOL_ENDED,
    RunEnded(outcome=Outcome.ANSWERED, text="done", turns=1),
)


async def test_events_come_back_as_they_were(store: Store):
    lease = await claimed(store)
    entries = [Entry(number=n, run="r", at=n / 3, event=event) for n, event in enumerate(EVENTS, 1)]

    await store.write(lambda tx: store.history.append(tx, lease, entries))

    assert await store.history.entries("s1") == entries


async def test_a_reader_goes_on_from_the_number_that_it_saw(store: Store):
    lease = await claimed(store)

    await append(store, lease, 1, 2, 3, 4)

    assert [item.number for item in await store.history.entries("s1", after=2)] == [3, 4]
    assert [item.number for item in await store.history.entries("s1", after=1, limit=2)] == [2, 3]
    assert await store.history.last_number("s1") == 4
    assert await store.history.last_number("nobody") == 0


async def test_a_number_is_written_once(store: Store):
    lease = await claimed(store)
    await append(store, lease, 1)

    with pytest.raises(StoreError):
        await append(store, lease, 1)

    assert len(await store.history.entries("s1")) == 1


async def test_an_entry_that_would_leave_a_hole_is_refused(store: Store):
    lease = await claimed(store)
    await append(store, lease, 1, 2, 3)
    for lost in ("DELETE FROM entry WHERE number > 1", "UPDATE lane SET head = 1"):
        await store.write(lambda tx, lost=lost: tx.run(lost))

    for numbers in ((4,), (4, 5), (3, 4)):
        with pytest.raises(LogBehind, match=f"entry {numbers[0]} was next and its log ends at 1") as refused:
            await append(store, lease, *numbers)
        assert refused.value.last == 1
    await append(store, lease, 2, 3)

    assert [item.number for item in await store.history.entries("s1")] == [1, 2, 3]


@pytest.mark.parametrize("lost", ["UPDATE lane SET epoch = 0, owner = NULL", "DELETE FROM lane"])
async def test_a_claim_that_the_database_lost_is_named(store: Store, lost: str):
    lease = await claimed(store)
    await store.write(lambda tx: tx.run(lost))

    with pytest.raises(LogBehind, match="its claim is gone"):
        await append(store, lease, 1)


async def test_an_append_without_the_lane_writes_nothing(store: Store, open_another: OpenAnother):
    lease = await claimed(store)
    await store.lanes.release(lease)
    other = await open_another()
    assert await other.lanes.claim([QUEUE], "s1") is not None

    with pytest.raises(LostLease):
        await append(store, lease, 1)

    assert await store.history.entries("s1") == []


async def test_a_failed_step_leaves_nothing_of_itself(store: Store):
    lease = await claimed(store)

    async def change(tx):
        await store.history.append(tx, lease, [entry(1)])
        await store.history.append(tx, lease, [entry(2)])
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        await store.write(change)

    assert await store.history.entries("s1") == []


async def test_a_branch_begins_as_a_copy(store: Store):
    lease = await claimed(store)
    await append(store, lease, 1, 2, 3)
    await add(store, session("s2"))
    branch = await store.lanes.hold("s2", QUEUE)
    assert branch is not None

    copied = await store.write(lambda tx: store.history.copy(tx, branch, "s1", 2))

    assert copied == 2
    assert await store.history.entries("s2") == await store.history.entries("s1", limit=2)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some.text(some.characters()))
def test_any_text_survives_the_log(text: str):
    event = Notice(text=text)

    assert revive(Durable, plain(written(event))) == event


async def test_appending_nothing_still_asks_for_the_lease(store: Store):
    lease = await claimed(store)
    await append(store, lease)
    await store.lanes.release(lease)

    with pytest.raises(LostLease):
        await append(store, lease)


async def test_the_sessions_that_called_a_tool_with_a_word_are_found(store: Store):
    lease = await claimed(store)
    said = Entry(number=1, run="r1", at=1.0, event=REPLIED)
    await store.write(lambda tx: store.history.append(tx, lease, [said]))

    assert await store.history.calling("read_file", "a") == ("s1",)
    assert await store.history.calling("read_file", "other") == ()
    assert await store.history.calling("write_file", "a") == ()


async def test_what_holds_a_word_is_found_in_logs_and_open_mail(store: Store):
    for name, word in (("s1", "cache/input/a"), ("s2", "cache/results/b")):
        lease = await claimed(store, name, name)
        said = entry(1, word)
        await store.write(lambda tx, lease=lease, said=said: store.history.append(tx, lease, [said]))
    await store.inbox.accept(mail(3, "cache/input/c"), "s1", QUEUE)
    words = ("cache/input/", "cache/results/")

    assert len(await store.history.holding(words)) == 3
    assert len(await store.history.holding(words, "s1")) == 2
    assert "cache/results/b" in (await store.history.holding(words, "s2"))[0]
    assert await store.history.holding(words, "s3") == []


ASKED = Asked(question="q1", text="Which one?", choices=(), purpose="clarify")
ENDED = RunEnded(outcome=Outcome.ANSWERED, text="Done.", turns=1)


async def write(store: Store, lease, *events, run: str = "r1") -> None:
    first = await store.history.last_number("s1") + 1
    entries = [Entry(number=first + place, run=run, at=1.0, event=event) for place, event in enumerate(events)]
    await store.write(lambda tx: store.history.append(tx, lease, entries))


async def numbers(pages: AsyncIterator[list[Entry]]) -> list[int]:
    return [entry.number async for page in pages for entry in page]


async def run_row(store: Store, run: str = "r1") -> tuple[object, ...]:
    return (await store.read(lambda tx: tx.rows("SELECT status, question, first, last FROM run WHERE run = $1", run)))[
        0
    ]


async def test_a_run_is_found_by_the_message_that_it_took(store: Store):
    lease = await claimed(store)
    message = MessageTaken(message=said("hello"), inbox=lease.waiting[0])

    await write(store, lease, Notice(text="before"), RunStarted(), message)
    going = await numbers(store.history.of_mail("s1", lease.waiting[0]))
    await write(store, lease, ENDED)

    await write(store, lease, RunStarted(), run="r2")

    assert going == [3]
    assert await numbers(store.history.of_mail("s1", lease.waiting[0])) == [3, 4]
    assert await numbers(store.history.of_run("s1", "r1")) == [2, 3, 4]
    assert await numbers(store.history.of_run("s1", "r1", after=3)) == [4]
    assert await numbers(store.history.of_run("s1", "r1", after=9)) == []
    assert await numbers(store.history.since_last_end("s1")) == [5]


async def test_a_row_says_what_the_run_waits_with_and_how_it_ended(store: Store):
    lease = await claimed(store)

    await write(store, lease, RunStarted(), ASKED)
    waiting = await run_row(store)
    await write(store, lease, Answered(question="another", answer="no", principal="cli:ann"))
    still = await run_row(store)
    await write(store, lease, Answered(question="q1", answer="yes", principal="cli:ann"))
    running = await run_row(store)
    await write(store, lease, ENDED)

    assert waiting == still == ("waiting", "q1", 1, 0)
    assert running == ("running", "", 1, 0)
    assert await run_row(store) == ("answered", "", 1, 5)


async def test_a_run_without_a_row_is_looked_for_in_the_whole_log(store: Store):
    lease = await claimed(store)
    await write(store, lease, RunStarted(), MessageTaken(message=said("hello"), inbox=lease.waiting[0]))
    for lost in ("DELETE FROM run", "UPDATE inbox SET number = NULL"):
        await store.write(lambda tx, lost=lost: tx.run(lost))

    for pages in (
        store.history.of_mail("s1", lease.waiting[0]),
        store.history.of_run("s1", "r1"),
        store.history.since_last_end("s1"),
    ):
        assert await numbers(pages) == [1, 2]


async def test_rows_go_with_their_session(store: Store):
    lease = await claimed(store)
    await write(store, lease, RunStarted(), ENDED)

    await store.sessions.delete("s1")

    assert await store.read(lambda tx: tx.rows("SELECT * FROM run")) == []


async def test_an_entry_that_cannot_be_read_is_passed_over_and_named(store: Store):
    lease = await claimed(store)
    await append(store, lease, 1, 2)
    broken = (REPLIED, RunEnded(outcome=Outcome.ANSWERED, text="done", turns=1))
    entries = [Entry(number=number, run="r", at=1.0, event=event) for number, event in enumerate(broken, 3)]
    await store.write(lambda tx: store.history.append(tx, lease, entries))
    await store.write(lambda tx: tx.run("UPDATE entry SET body = '{' WHERE number > 2"))

    passed = [entry.event for entry in await store.history.entries("s1", after=2)]

    assert isinstance(passed[0], MessageTaken)
    assert isinstance(passed[1], Notice)
    assert "Entry 3" in passed[0].message.text
    assert await store.history.damaged() == ["s1 3", "s1 4"]


async def test_an_event_of_a_later_version_is_not_passed_over(store: Store):
    lease = await claimed(store)
    await append(store, lease, 1)
    await store.write(lambda tx: tx.run("UPDATE entry SET kind = 'teleported', body = '{}'"))

    with pytest.raises(DatabaseTooNew, match="`teleported`"):
        await store.history.entries("s1")
    assert await store.history.damaged() == []
