"""Health tells the truth: of a pool without places, a loop that was held, a run past its end, a silent database."""

import asyncio
import select
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import apsw
import pytest

from hermes_agent.core.spending import Limits
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.runs.health import BEAT, HELD, Health
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, Piece, tool
from tests.gateway.harness import eventually


@asynccontextmanager
async def looked_after(harness: Harness) -> AsyncIterator[tuple[Harness, Health]]:
    """A house, and its health, which was asked for once."""
    async with harness.open():
        health = Health(harness.store, harness.hermes.scheduler.bus, harness.hermes.scheduler.overdue)
        assert await texts(health) == []
        yield harness, health
        health.close()


async def texts(health: Health, patience: float = 5.0) -> list[str]:
    return [ailment.text for ailment in await health.ailments(patience)]


async def test_where_all_is_well_there_is_nothing_to_say(tmp_path):
    async with looked_after(Harness(tmp_path, ScriptedModel([Say("Hello.")]))) as (harness, health):
        assert await texts(health) == []
        await harness.say("Hi")
        assert await texts(health) == []


async def test_at_rest_it_does_nothing_of_its_own_accord(tmp_path):
    async with looked_after(Harness(tmp_path, ScriptedModel([Say("Hello.")]))) as (harness, health):
        before = asyncio.all_tasks()
        await harness.say("Hi")
        assert health._beating is not None
        await harness.rest()
        await asyncio.wait((health._beating,), timeout=2 * BEAT + 1)

        assert not [task for task in asyncio.all_tasks() - before if "health" in task.get_name()]


async def test_a_pool_without_places_is_told_until_there_is_one(tmp_path):
    async with looked_after(Harness(tmp_path, ScriptedModel([Say("Hello.")]))) as (_, health):
        over = threading.Event()
        waiting = [asyncio.create_task(asyncio.to_thread(over.wait)) for _ in range(40)]
        await asyncio.sleep(0)
        for _ in range(3):
            (ailment,) = await health.ailments(0.1)
            assert "No thread has been free for" in ailment.text
            assert ailment.stands > 0
        assert ailment.stands > 0.25  # It is one wait, however often somebody asks.
        over.set()
        await asyncio.wait(waiting)

        assert await texts(health) == []


async def test_a_loop_that_was_held_is_told_for_a_minute(tmp_path):
    slow = tool("slow", seconds=2 * BEAT)
    async with looked_after(Harness(tmp_path, ScriptedModel([Call("slow", {}), Say("Done.")]), tools=(slow,))) as (
        harness,
        health,
    ):
        await harness.tell("Go")
        await eventually(lambda: bool(slow.calls))
        select.select([], [], [], HELD + BEAT + 0.2)  # The defect: nothing else runs.
        await eventually(lambda: health._held[0] > 0)

        (text,) = await texts(health)
        assert text.startswith("The event loop was blocked for")
        (ailment,) = await health.ailments(5.0)
        assert ailment.stands == 0
        health._held = (health._held[0], health._held[1] - 61)
        assert await texts(health) == []


@pytest.mark.parametrize("how", ["stop", "deadline"])
async def test_a_run_that_does_not_heed_its_end_is_told(tmp_path, how):
    """By a stop, or by its deadline."""
    let_go = asyncio.Event()

    async def stubborn(*_: object) -> str:
        while not let_go.is_set():
            with suppress(asyncio.CancelledError):
                await let_go.wait()
        return "done"

    model = ScriptedModel([Call("stubborn", {}), Say("Done.")])
    limits = Limits(deadline=time.monotonic() + 1.0 if how == "deadline" else None)
    harness = Harness(tmp_path, model, tools=(made := Piece(name="stubborn", body=stubborn),), limits=lambda: limits)
    async with looked_after(harness) as (_, health):
        await harness.tell("Go")
        await eventually(lambda: bool(made.calls))
        if how == "stop":
            harness.hermes.scheduler.stop(harness.session)
        await eventually(lambda: max(harness.hermes.scheduler.overdue()) > 0)
        assert await texts(health, 0.5) == []
        running = harness.hermes.scheduler._running[harness.session]
        running.switch._struck -= 30

        (ailment,) = await health.ailments()
        assert ailment.text.startswith("A run is still active 30 s after its")
        assert 30 <= ailment.stands < 40
        let_go.set()
        await harness.rest()
        assert await texts(health) == []


async def test_a_database_that_does_not_answer_is_told_and_one_that_fails_with_its_words(tmp_path):
    async with looked_after(Harness(tmp_path, ScriptedModel([Say("Hello.")]))) as (harness, health):
        other = apsw.Connection(str(tmp_path / "hermes.db"))
        other.execute("BEGIN EXCLUSIVE")
        (ailment,) = await health.ailments(0.2)
        assert ailment.text.startswith("The database has not answered for")
        assert ailment.stands > 0
        other.execute("ROLLBACK")
        other.close()
        await eventually(lambda: health._writer._asking.done())
        assert await texts(health) == []

        await harness.store.close()
        (ailment,) = await health.ailments(5.0)
        assert (ailment.text, ailment.stands) == ("The database cannot be written.", 0)
        assert "closed" in ailment.detail
