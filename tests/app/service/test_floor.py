"""The floor of a process that serves everybody: at most so many runs, what is kept, who is told of a ring."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from hermes_agent.core.events import MessageTaken, RunEnded, Seen
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.tool import CallContext, Question
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.store.database import open_store
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.house import OWNER, House, Piece
from tests.app.service.test_posting import served


async def eventually(ready: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not ready():
            await asyncio.sleep(0.005)


async def more_sessions(house: House, count: int) -> list[str]:
    """Sessions with a message each."""
    made = []
    for number in range(count):
        where = Conversation(platform="telegram", chat=f"more {number}")
        record = await house.hermes.open_session(where, OWNER, workspace=str(house.path))
        await house.hermes.submit(house.inbound("Hi", message_id=f"m{number}"), record.id)
        made.append(record.id)
    return made


async def test_no_more_runs_than_allowed_are_under_way(tmp_path: Path):
    async with served(House(tmp_path, ScriptedModel([Hang()]))) as house:
        sessions = await more_sessions(house, 6)
        floor = house.hermes.floor
        await eventually(lambda: len(floor._running) == 4)
        await asyncio.sleep(0.1)
        assert len(floor._running) == 4

        first = next(session for session in sessions if floor.runs(session))
        await house.hermes.stop(first)

        await eventually(lambda: not floor.runs(first) and len(floor._running) == 4)


async def test_a_run_that_waits_for_a_person_keeps_nobody_out(tmp_path: Path):
    async def ask(_: object, context: CallContext) -> str:
        return await context.ask(Question(text="Which?"))

    script = ScriptedModel(lambda heard: Call("ask", {}) if heard.messages[-1].text else Say("Done."))
    async with served(House(tmp_path, script, (Piece("ask", ask),))) as house:
        sessions = await more_sessions(house, 7)

        async with asyncio.timeout(15):
            await asyncio.wait([asyncio.ensure_future(asks(house, session)) for session in sessions])


async def test_a_rest_does_not_last_for_a_run_that_begins_to_wait_for_a_person(tmp_path: Path):
    begun, may = asyncio.Event(), asyncio.Event()

    async def ask(_: object, context: CallContext) -> str:
        begun.set()
        await may.wait()
        return await context.ask(Question(text="Which?"))

    async with served(House(tmp_path, ScriptedModel([Call("ask", {})]), (Piece("ask", ask),))) as house:
        await house.tell("Hi")
        await begun.wait()
        resting = asyncio.ensure_future(house.hermes.floor.rest())
        await asyncio.sleep(0)
        may.set()

        async with asyncio.timeout(10):
            await resting


async def asks(house: House, session: str) -> None:
    while not await house.hermes.floor.question(session):
        await asyncio.sleep(0.01)


async def test_runs_under_suspicion_are_begun_one_by_one(tmp_path: Path):
    async with served(House(tmp_path, ScriptedModel([Hang()]))) as house:
        floor = house.hermes.floor
        await floor.rest()  # Nothing is claimed yet.
        sessions = await more_sessions(house, 3)
        await house.store.write(lambda tx: tx.run("UPDATE lane SET crashes = 2"))
        await house.hermes.submit(house.inbound("Hi"), house.session)
        floor._resting = False
        floor.look()

        for left in (3, 2, 1):
            await eventually(lambda: len(floor._running) == 2)
            await asyncio.sleep(0.05)
            (suspect,) = [session for session in sessions if floor.runs(session)]
            ended = floor.stop(suspect)
            assert ended is not None, left
            await ended.wait()


async def test_everything_that_happens_here_is_overheard(tmp_path: Path):
    async with served(House(tmp_path, ScriptedModel([Say("Hello.")]))) as house:
        heard: list[Seen] = []
        house.hermes.floor.bus.overhear(heard.append)

        await house.say("Hi")

        assert isinstance(heard[-1].event, RunEnded)


async def test_a_ring_from_another_process_is_heeded(tmp_path: Path):
    async with served(House(tmp_path, ScriptedModel([Say("Hello.")]))) as house:
        rung = asyncio.Event()
        house.hermes.floor.heed(rung.set)
        await asyncio.sleep(0.1)  # It is listening by then.
        other = await open_store(str(tmp_path / "hermes.db"))
        await other.inbox.accept(house.inbound("Hi"), house.session, "cli")

        async with asyncio.timeout(10):
            await rung.wait()
        await other.close()


async def test_who_serves_everybody_goes_on_after_a_failure_of_the_store(tmp_path: Path, caplog):
    async with served(House(tmp_path, ScriptedModel([Say("Hello.")]))) as house:
        engine = house.store.engine
        await asyncio.sleep(0.05)
        engine._closed = True
        house.hermes.floor.look()
        await eventually(lambda: "no run can begin" in caplog.text)
        engine._closed = False

        assert (await house.say("Hi")).text == "Hello."


async def test_who_serves_everybody_goes_on_after_a_defect(tmp_path: Path, caplog):
    async with served(House(tmp_path, ScriptedModel([Say("Hello.")]))) as house:
        real, failures = house.store.lanes.claim, [KeyError("a defect")]

        async def claim(*given: object, **more: object) -> object:
            if failures:
                raise failures.pop()
            return await real(*given, **more)

        house.store.lanes.claim = claim

        assert (await house.say("Hi")).text == "Hello."
    assert "no run can begin" in caplog.text


async def test_a_run_whose_lane_was_taken_away_ends_before_the_lane_goes_on_here(tmp_path: Path, caplog):
    async def given_up(tx) -> None:
        """What another process does after this one was silent for too long."""
        await tx.run("UPDATE lane SET owner = NULL")

    model = ScriptedModel(lambda _: Hang() if len(model.requests) == 1 else Say("Hello."))
    async with served(House(tmp_path, model)) as house:
        floor, overlap = house.hermes.floor, []
        await house.tell("Hi")
        await house.until(MessageTaken)
        await eventually(lambda: len(model.requests) == 1)
        before = floor._running[house.session]
        floor.bus.overhear(lambda seen: overlap.append(before.task.done()))

        await house.store.write(given_up)
        floor.look()
        ended = await house.ended()
        await eventually(lambda: not floor.runs(house.session))

        assert ended.text == "Hello."
        assert overlap
        assert all(overlap)
        assert "KeyError" not in caplog.text
