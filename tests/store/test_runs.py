"""Rows of runs: where in a log each run is, from the run's own commits."""

from hermes_agent.core.events import Answered, Asked, Entry, MessageTaken, Notice, Outcome, RunEnded, RunStarted
from hermes_agent.core.messages import said
from hermes_agent.store.database import Store
from hermes_agent.store.runs import WHOLE, Span
from tests.store.made import claimed

ASKED = Asked(question="q1", text="Which one?", choices=(), purpose="clarify")
ENDED = RunEnded(outcome=Outcome.ANSWERED, text="Done.", turns=1)


async def append(store: Store, lease, *events, run: str = "r1") -> None:
    first = await store.history.last_number("s1") + 1
    entries = [Entry(number=first + place, run=run, at=1.0, event=event) for place, event in enumerate(events)]
    await store.write(lambda tx: store.history.append(tx, lease, entries))


async def row(store: Store, run: str = "r1") -> tuple[object, ...]:
    return (await store.read(lambda tx: tx.rows("SELECT status, question, first, last FROM run WHERE run = $1", run)))[
        0
    ]


async def test_a_run_is_found_by_the_message_that_it_took(store: Store):
    lease = await claimed(store)
    message = MessageTaken(message=said("hello"), inbox=lease.waiting[0])

    await append(store, lease, Notice(text="before"), RunStarted(), message)
    going = await store.runs.of_mail("s1", lease.waiting[0])
    await append(store, lease, ENDED)

    assert going == Span(first=3, last=0)
    assert (await store.runs.of_mail("s1", lease.waiting[0])) == Span(first=3, last=4)
    assert (await store.runs.span("s1", "r1")).length == 3
    assert await store.runs.last_end("s1") == 4


async def test_a_row_says_what_the_run_waits_with_and_how_it_ended(store: Store):
    lease = await claimed(store)

    await append(store, lease, RunStarted(), ASKED)
    waiting = await row(store)
    await append(store, lease, Answered(question="another", answer="no", principal="cli:ann"))
    still = await row(store)
    await append(store, lease, Answered(question="q1", answer="yes", principal="cli:ann"))
    running = await row(store)
    await append(store, lease, ENDED)

    assert waiting == still == ("waiting", "q1", 1, 0)
    assert running == ("running", "", 1, 0)
    assert await row(store) == ("answered", "", 1, 5)


async def test_a_run_without_a_row_is_looked_for_in_the_whole_log(store: Store):
    lease = await claimed(store)
    await append(store, lease, RunStarted(), MessageTaken(message=said("hello"), inbox=lease.waiting[0]))
    for lost in ("DELETE FROM run", "UPDATE inbox SET number = NULL"):
        await store.write(lambda tx, lost=lost: tx.run(lost))

    assert await store.runs.of_mail("s1", lease.waiting[0]) == await store.runs.span("s1", "r1") == WHOLE
    assert await store.runs.last_end("s1") == 0


async def test_rows_go_with_their_session(store: Store):
    lease = await claimed(store)
    await append(store, lease, RunStarted(), ENDED)

    await store.sessions.delete("s1")

    assert await store.read(lambda tx: tx.rows("SELECT * FROM run")) == []
