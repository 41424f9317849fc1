"""Where runs happen: what goes wrong there is told, and nothing is left claimed."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, replace

import pytest

from hermes_agent.agent.session import Session, fold
from hermes_agent.core.chat import Busy
from hermes_agent.core.clock import RandomIds
from hermes_agent.core.errors import DatabaseTooNew, HermesError, StoreError
from hermes_agent.core.events import MessageTaken, Outcome, RunEnded, ToolStarted
from hermes_agent.core.messages import Origin, said
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.scheduler import KEPT_VIEWS, TRIAL, CrashIsolation, Scheduler, keep, kept, rung
from hermes_agent.store.lanes import Lanes
from hermes_agent.store.leases import Lease
from hermes_agent.store.workers import Timings
from hermes_agent.testing.clock import FakeClock
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import OWNER, PLACE, Harness, Piece, tool
from tests.runs.test_posting import served


async def test_a_session_at_rest_is_not_held_in_memory(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Say("Hello.")])).open() as harness:
        await harness.say("Hi")
        await harness.rest()
        while harness.hermes._scheduler._own:
            await asyncio.sleep(0.001)

        assert not harness.hermes._scheduler._running


async def test_a_store_that_fails_ends_the_watching_with_the_reason(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Say("Hello.")])).open() as harness:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(failure_of(harness))
            await asyncio.sleep(0)
            await harness.tell("Hi")
            await harness.store.engine.close()

        assert isinstance(watching.result(), StoreError)


async def failure_of(harness: Harness) -> BaseException | None:
    try:
        await harness.ended()
    except HermesError as error:
        return error
    return None


async def test_an_event_of_a_later_version_is_named_and_its_message_waits_for_that_version(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Say("Hello."), Say("Again.")])).open() as harness:
        await harness.say("Hi")
        number = (await harness.log())[-1].number + 1
        insert = "INSERT INTO entry (session, number, run, at, kind, body) VALUES ($1, $2, 'r', 1.0, $3, $4)"
        later = (harness.session, number, "dreamt", '{"kind":"dreamt","of":"sheep"}')
        await harness.store.write(lambda tx: tx.run(insert, *later))
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(failure_of(harness))
            await asyncio.sleep(0)
            await harness.tell("Still there?")

        assert type(watching.result()) is DatabaseTooNew
        assert f"Entry {number} of session {harness.session} is an event `dreamt`, which" in str(watching.result())
        async with asyncio.timeout(5):
            while (lane := await lane_of(harness))[0] is not None:
                await asyncio.sleep(0.01)
        assert lane == (None, 1, 0)
        await harness.store.write(lambda tx: tx.run("DELETE FROM entry WHERE kind = 'dreamt'"))
        await harness.store.lanes.insist(harness.session)
        assert (await harness.say("Now?")).text == "Again."


async def lane_of(harness: Harness):
    query = "SELECT owner, pending, attempts FROM lane WHERE id = $1"
    return await harness.store.read(lambda tx: tx.row(query, harness.session))


class NoIds(RandomIds):
    """Fails where a run needs an id."""

    def short(self) -> str:
        raise ZeroDivisionError


async def test_a_defect_in_the_end_of_a_run_is_told_with_an_apology(tmp_path, caplog):
    async with Harness(tmp_path, ScriptedModel([Say("Hello.")]), ids=NoIds()).open() as harness:
        with pytest.raises(HermesError, match=r"logs/hermes\.log"):
            await harness.say("Hi", message_id="1")

        assert "ZeroDivisionError" in caplog.text


async def test_a_worker_of_the_queue_takes_what_any_process_left(tmp_path):
    harness = Harness(tmp_path, ScriptedModel([Say("Hello.")]))
    async with harness.open():
        await harness.store.inbox.accept(harness.inbound("Hi"), harness.session, "cli")
        scheduler = Scheduler(
            store=harness.store,
            build=harness.building,
            seam=Seam(harness.clock, harness.ids),
            queue="cli",
            own_only=False,
        )
        scheduler.wake()
        assert (await harness.ended()).outcome is Outcome.ANSWERED
        await scheduler.close()


async def test_a_person_who_asks_again_is_not_refused_for_earlier_crashes(tmp_path):
    harness = Harness(tmp_path, ScriptedModel([Hang()]))
    for _ in range(4):
        async with harness.open():
            await harness.tell("Hi")
            await harness.until(MessageTaken)
            await harness.store.write(died)
    harness.model = ScriptedModel(lambda heard: Say("Here."))
    async with harness.open():
        after = (await harness.log())[-1].number
        await harness.tell("Again")

        assert (await harness.ended(after)).text == "Here."


async def died(tx):
    await tx.run("UPDATE lane SET crashes = crashes + 1")


async def test_mail_that_comes_at_the_very_end_of_a_run_is_not_left_lying(tmp_path):
    """A run gives its lane back, and before it is forgotten here there is mail again."""
    model = ScriptedModel(lambda heard: Say(f"Reply to {heard.last.text}."))
    async with Harness(tmp_path, model).open() as harness:
        for number in range(30):
            after = (await harness.log() or [None])[-1]
            ended = await harness.say(f"m{number}", message_id=str(number))
            assert ended.text == f"Reply to m{number}.", after

        words = [line for line in await harness.transcript() if line.startswith("user")]
        assert words == [f"user: m{number}" for number in range(30)]


async def test_the_view_that_is_kept_for_the_next_run_is_the_one_that_the_log_gives(tmp_path):
    steps = [Call("look", {}), Say("First."), [Call("look", {}), Call("nonesuch")], Say("Second."), Say("Third.")]
    async with Harness(tmp_path, ScriptedModel(steps), tools=(tool("look", "seen"),)).open() as harness:
        for words in ("One", "Two"):
            await harness.say(words)
            await harness.rest()
        async with harness.hermes.holding(harness.session) as journal:  # somebody else writes beside it
            await journal.commit(MessageTaken(message=said("By the way.", Origin.RUNTIME)))
        await harness.say("Three")
        await harness.rest()

        _, view = harness.hermes._scheduler._views[harness.session]
        again = fold(Session(id=harness.session, workspace=view.workspace), await harness.log())
        again.weights, view.weights  # noqa: B018  both look at what is new
        assert view == again


async def test_only_the_last_few_views_are_kept(tmp_path):
    async with Harness(tmp_path, ScriptedModel(lambda _: Say("Hello."))).open() as harness:
        scheduler = harness.hermes._scheduler
        for number in range(KEPT_VIEWS + 2):
            keep(scheduler._views, Session(id=str(number)), Lease(lane=str(number), worker="w", epoch=1))

        assert list(scheduler._views) == [str(number) for number in range(2, KEPT_VIEWS + 2)]


def test_a_view_from_before_a_promotion_is_read_anew():
    view, lease = Session(id="s1", number=7), Lease(lane="s1", worker="w", epoch=3)
    views = OrderedDict[str, tuple[int, Session]]()

    keep(views, view, lease)
    assert kept(views, replace(lease, epoch=4)) is view
    keep(views, view, lease)
    assert kept(views, replace(lease, epoch=(1 << 32) + 1)).number == 0
    assert not views


async def test_a_wait_that_fails_says_why_and_nothing_more(tmp_path):
    class Refused:
        async def wait(self, _: float) -> bool:
            raise StoreError("PostgreSQL refused.")

    with pytest.raises(StoreError, match="refused"):
        await rung(Refused(), asyncio.Event(), 5.0)


async def test_where_there_is_no_room_nobody_asks_what_is_next(tmp_path):
    async with served(Harness(tmp_path, ScriptedModel([Hang()]))) as harness:
        scheduler, asked = harness.hermes.scheduler, []
        scheduler.service = replace(scheduler.service, most=1)
        harness.store.lanes.next_ready = counted(harness.store.lanes.next_ready, asked)
        await harness.tell("Hi")
        await harness.until(MessageTaken)
        other = await harness.hermes.open_session(replace(PLACE, chat="other"), OWNER, workspace=str(tmp_path))
        await harness.hermes.submit(harness.inbound("Hi"), other.id)
        await asyncio.sleep(0.1)

        before = len(asked)
        await asyncio.sleep(0.3)
        assert len(asked) - before < 5


def counted(real, asked):
    async def ask(*given, **more):
        asked.append(given)
        return await real(*given, **more)

    return ask


class Slow:
    """Lanes whose answer about stops comes when somebody lets it."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self.read, self.free = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._lanes, name)

    async def stops(self) -> list[tuple[str, str]]:
        found = await self._lanes.stops()
        if found:
            self.read.set()
            await self.free.wait()
        return found


async def test_a_stop_that_is_read_as_its_run_ends_does_not_strike_the_next_one(tmp_path):
    first, second = asyncio.Event(), asyncio.Event()

    async def wait(arguments, _) -> str:
        await (first if arguments["which"] == 1 else second).wait()
        return "Done."

    model = ScriptedModel(
        [Call("wait", {"which": 1}), Say("The first."), Call("wait", {"which": 2}), Say("The second.")]
    )
    one = Harness(tmp_path, model, (Piece("wait", wait),))
    async with one.open():
        two = Harness(tmp_path, ScriptedModel([]), session=one.session)
        async with two.open():
            slow = one.store.lanes = Slow(one.store.lanes)
            await one.tell("Hi")
            await one.until(ToolStarted)
            await one.tell("Later", busy=Busy.QUEUE)
            assert await two.hermes.stop(one.session)
            await slow.read.wait()
            first.set()
            ended = await one.until(RunEnded)
            await one.until(ToolStarted, ended.number)

            slow.free.set()
            await one.tell("steered")  # Rings: the order is read again.
            second.set()
            after = await one.ended(ended.number)

        assert (after.outcome, after.text) == (Outcome.ANSWERED, "The second.")


@pytest.mark.parametrize("place", ["events", "rings", "ends"])
async def test_who_only_watches_and_fails_ends_nobodys_run(tmp_path, caplog, place):
    """One that is told of events, of rings from outside, or of the end of a run."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    async with Harness(tmp_path, ScriptedModel([Say("Hello."), Say("Again.")])).open() as harness:
        scheduler, heard = harness.hermes.scheduler, list[str]()
        match place:
            case "events":
                scheduler.bus.overhear(broken)
                scheduler.bus.overhear(lambda seen: heard.append(seen.event.kind))
            case "rings":
                scheduler.subscribe(broken)
                scheduler.subscribe(lambda: heard.append("ring"))
            case "ends":
                scheduler.service = replace(
                    scheduler.service, afterwards=(lambda *_: heard.append("over") or broken(),)
                )
        first = await harness.say("Hi")
        await harness.rest()
        if place == "rings":
            await scheduler._on_ring()
        again = await harness.say("Hi again")

        assert (first.text, again.text) == ("Hello.", "Again.")
        assert heard
        assert "ZeroDivisionError" in caplog.text


async def test_a_stop_whose_ring_was_lost_is_heeded_when_the_worker_looks_again(tmp_path):
    async def wait(arguments, _) -> str:
        await asyncio.Event().wait()
        return ""

    harness = Harness(tmp_path, ScriptedModel([Call("wait", {})]), (Piece("wait", wait),), timings=Timings(ttl=1.0))
    async with harness.open():
        await harness.tell("Hi")
        await harness.until(ToolStarted)

        await harness.store.write(lambda tx: tx.run("UPDATE lane SET stop_epoch = epoch"))

        async with asyncio.timeout(5):
            assert (await harness.ended()).outcome is Outcome.STOPPED


@dataclass
class Run:
    waits: bool = False


def lease(name: str, *, suspect: bool = True, poison: str = "") -> Lease:
    return Lease(lane=name, worker="w", epoch=1, suspect=suspect, poison=poison)


def test_others_are_begun_side_by_side():
    crash_isolation = CrashIsolation(FakeClock(), {"s1": Run(), "s2": Run()})

    crash_isolation.begun(lease("s1", suspect=False))
    crash_isolation.begun(lease("s2", poison="Given up."))

    assert crash_isolation.open()


def test_a_suspect_waits_until_the_one_before_has_ended():
    running = {"s1": Run(), "s2": Run()}
    crash_isolation = CrashIsolation(FakeClock(), running)
    crash_isolation.begun(lease("s1"))
    assert not crash_isolation.open()

    del running["s1"]

    assert crash_isolation.open()


def test_one_that_waits_for_a_person_holds_nobody_up():
    run = Run()
    crash_isolation = CrashIsolation(FakeClock(), {"s1": run})
    crash_isolation.begun(lease("s1"))

    run.waits = True
    assert crash_isolation.open()

    run.waits = False
    assert not crash_isolation.open()


async def test_one_that_has_lived_long_enough_holds_nobody_up():
    clock = FakeClock()
    crash_isolation = CrashIsolation(clock, {"s1": Run()})
    crash_isolation.begun(lease("s1"))

    await clock.advance(TRIAL - 1)
    assert not crash_isolation.open()

    await clock.advance(1)
    assert crash_isolation.open()
