"""The scheduler of a process that serves everybody: at most so many runs, what is kept, who is told of a ring."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.app.system import served as serving_until
from hermes_agent.core.chat import Conversation
from hermes_agent.core.errors import DatabaseTooNew
from hermes_agent.core.events import MessageTaken, RunEnded, Seen
from hermes_agent.core.tool import CallContext, Question
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.front import Hermes
from hermes_agent.store.database import open_store
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import OWNER, Harness, Piece
from tests.runs.test_posting import served


async def eventually(ready: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not ready():
            await asyncio.sleep(0.005)


async def more_sessions(harness: Harness, count: int) -> list[str]:
    """Sessions with a message each."""
    made = []
    for number in range(count):
        where = Conversation(platform="telegram", chat=f"more {number}")
        record = await harness.hermes.open_session(where, OWNER, workspace=str(harness.path))
        await harness.hermes.submit(harness.inbound("Hi", message_id=f"m{number}"), record.id)
        made.append(record.id)
    return made


async def test_no_more_runs_than_allowed_are_under_way(tmp_path: Path):
    async with served(Harness(tmp_path, ScriptedModel([Hang()]))) as harness:
        sessions = await more_sessions(harness, 6)
        scheduler = harness.hermes.scheduler
        await eventually(lambda: len(scheduler._running) == 4)
        await asyncio.sleep(0.1)
        assert len(scheduler._running) == 4

        first = next(session for session in sessions if scheduler.runs(session))
        await harness.hermes.stop(first)

        await eventually(lambda: not scheduler.runs(first) and len(scheduler._running) == 4)


async def test_a_run_that_waits_for_a_person_keeps_nobody_out(tmp_path: Path):
    async def ask(_: object, context: CallContext) -> str:
        return await context.ask(Question(text="Which?"))

    script = ScriptedModel(lambda heard: Call("ask", {}) if heard.messages[-1].text else Say("Done."))
    async with served(Harness(tmp_path, script, (Piece("ask", ask),))) as harness:
        sessions = await more_sessions(harness, 7)

        async with asyncio.timeout(15):
            await asyncio.wait([asyncio.ensure_future(asks(harness, session)) for session in sessions])


async def test_a_rest_does_not_last_for_a_run_that_begins_to_wait_for_a_person(tmp_path: Path):
    begun, may = asyncio.Event(), asyncio.Event()

    async def ask(_: object, context: CallContext) -> str:
        begun.set()
        await may.wait()
        return await context.ask(Question(text="Which?"))

    async with served(Harness(tmp_path, ScriptedModel([Call("ask", {})]), (Piece("ask", ask),))) as harness:
        await harness.tell("Hi")
        await begun.wait()
        resting = asyncio.ensure_future(harness.hermes.scheduler.rest())
        await asyncio.sleep(0)
        may.set()

        async with asyncio.timeout(10):
            await resting


async def asks(harness: Harness, session: str) -> None:
    while not await harness.hermes.scheduler.question(session):
        await asyncio.sleep(0.01)


async def test_runs_under_suspicion_are_begun_one_by_one(tmp_path: Path):
    async with served(Harness(tmp_path, ScriptedModel([Hang()]))) as harness:
        scheduler = harness.hermes.scheduler
        await scheduler.rest()  # Nothing is claimed yet.
        sessions = await more_sessions(harness, 3)
        await harness.store.write(lambda tx: tx.run("UPDATE lane SET crashes = 2"))
        await harness.hermes.submit(harness.inbound("Hi"), harness.session)
        scheduler._resting = False
        scheduler.wake()

        for left in (3, 2, 1):
            await eventually(lambda: len(scheduler._running) == 2)
            await asyncio.sleep(0.05)
            (suspect,) = [session for session in sessions if scheduler.runs(session)]
            ended = scheduler.stop(suspect)
            assert ended is not None, left
            await ended.wait()


async def test_everything_that_happens_here_is_overheard(tmp_path: Path):
    async with served(Harness(tmp_path, ScriptedModel([Say("Hello.")]))) as harness:
        heard: list[Seen] = []
        harness.hermes.scheduler.bus.overhear(heard.append)

        await harness.say("Hi")

        assert isinstance(heard[-1].event, RunEnded)


async def test_a_ring_from_another_process_is_heeded(tmp_path: Path):
    async with served(Harness(tmp_path, ScriptedModel([Say("Hello.")]))) as harness:
        rung = asyncio.Event()
        harness.hermes.scheduler.subscribe(rung.set)
        await asyncio.sleep(0.1)  # It is listening by then.
        other = await open_store(str(tmp_path / "hermes.db"))
        await other.inbox.accept(harness.inbound("Hi"), harness.session, "cli")

        async with asyncio.timeout(10):
            await rung.wait()
        await other.close()


async def test_who_serves_everybody_goes_on_after_a_failure_of_the_store(tmp_path: Path, caplog):
    async with served(Harness(tmp_path, ScriptedModel([Say("Hello.")]))) as harness:
        engine = harness.store.engine
        await asyncio.sleep(0.05)
        engine._closed = True
        harness.hermes.scheduler.wake()
        await eventually(lambda: "no run can begin" in caplog.text)
        engine._closed = False

        assert (await harness.say("Hi")).text == "Hello."


async def test_who_serves_everybody_goes_on_after_a_defect(tmp_path: Path, caplog):
    async with served(Harness(tmp_path, ScriptedModel([Say("Hello.")]))) as harness:
        real, failures = harness.store.lanes.claim, [KeyError("a defect")]

        async def claim(*given: object, **more: object) -> object:
            if failures:
                raise failures.pop()
            return await real(*given, **more)

        harness.store.lanes.claim = claim

        assert (await harness.say("Hi")).text == "Hello."
    assert "no run can begin" in caplog.text


async def test_a_run_whose_lane_was_taken_away_ends_before_the_lane_goes_on_here(tmp_path: Path, caplog):
    async def given_up(tx) -> None:
        """What another process does after this one was silent for too long."""
        await tx.run("UPDATE lane SET owner = NULL")

    model = ScriptedModel(lambda _: Hang() if len(model.requests) == 1 else Say("Hello."))
    async with served(Harness(tmp_path, model)) as harness:
        scheduler, overlap = harness.hermes.scheduler, []
        await harness.tell("Hi")
        await harness.until(MessageTaken)
        await eventually(lambda: len(model.requests) == 1)
        before = scheduler._running[harness.session]
        scheduler.bus.overhear(lambda seen: overlap.append(before.task.done()))

        await harness.store.write(given_up)
        scheduler.wake()
        ended = await harness.ended()
        await eventually(lambda: not scheduler.runs(harness.session))

        assert ended.text == "Hello."
        assert overlap
        assert all(overlap)
        assert "KeyError" not in caplog.text


async def test_a_worker_of_an_earlier_version_stops_where_a_later_one_has_changed_the_database(tmp_path):
    harness = Harness(tmp_path, ScriptedModel([Say("Hello.")]))
    async with harness.open():
        await harness.store.write(lambda tx: tx.run("PRAGMA user_version = 99"))
        await harness.store.inbox.accept(harness.inbound("Hi"), harness.session, "cli")
        harness.store.workers._rung = True  # As the message's own ring does in another process.
        hermes = Hermes(
            store=harness.store, build=harness.building, seam=Seam(harness.clock, harness.ids), own_only=False
        )
        serving = asyncio.create_task(serving_until(hermes, asyncio.Event().wait()))

        with pytest.raises(DatabaseTooNew, match="Start it again with that version"):
            async with asyncio.timeout(5):
                await serving
        hermes.scheduler.wake()
        assert await harness.store.read(lambda tx: tx.rows("SELECT owner FROM lane")) == [(None,)]
