"""What holds for a whole tree of agents: time, money, tools, crashes."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.opening import Options
from hermes_agent.app.settings import SERVED
from hermes_agent.core.events import RunStarted
from hermes_agent.core.messages import ToolResult
from hermes_agent.core.spending import NANO, Scope
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Piece, Say
from hermes_agent.testing.faults import Hang
from tests.app.place import PLACE, Place, place, spoken

WORKER = "You work for another agent"
PRICED = "  price_input: 1000\n  price_output: 1000\n"


async def children_of(here: Place):
    return await here.runtime.store.children.of(here.record.id)


def told(here: Place) -> list[str]:
    parts = [part for message in here.server.asked[-1].messages for part in message.parts]
    return [part.text for part in parts if isinstance(part, ToolResult)]


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_no_call_of_any_agent_begins_after_the_deadline_of_the_run_above(tmp_path, full):
    chance = random.Random(5)
    for turn in range(200 if full else 2):
        await keep_the_deadline(made(tmp_path / str(turn)), chance.randint(1, 3), chance.randint(40, 100) / 100)


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def keep_the_deadline(tmp_path: Path, width: int, seconds: float) -> None:
    def script(heard: Heard) -> Piece | Answer:
        if "delegate_task" in {tool.name for tool in heard.tools} and not spoken(heard):
            tasks = [{"goal": str(number)} for number in range(width)]
            return Call("delegate_task", {"tasks": tasks, "role": "orchestrator"})
        return Answer(pieces=(Call("todo", {}),), pace=Pace(first=0.05))

    async with place(tmp_path, script, more=f"agent: {{max_seconds: {seconds}}}\n") as here:
        await here.say("Go")
        async with asyncio.timeout(10):
            while any(child.is_open for child in await here.runtime.store.children.latest()):
                await asyncio.sleep(0.05)
        found = await here.runtime.store.children.latest()
        ends = {child.session: await here.runtime.store.mandates.of(child.session) for child in found}
        rows = [row for child in found for row in await here.runtime.store.usage.rows(child.session)]
        began = next(entry.at for entry in await here.log() if isinstance(entry.event, RunStarted))

        assert len(found) <= width + width**2
        assert {child.outcome for child in found} <= {"limit", "stopped"}
        assert all(each.until <= began + seconds + 0.01 for each in ends.values())
        assert all(row.at <= ends[row.session].until + 0.01 for row in rows)


@pytest.mark.timeout(30)
async def test_a_tree_of_a_job_keeps_within_its_money(tmp_path):
    def script(heard: Heard) -> Piece:
        if WORKER in heard.system:
            return Call("todo", {"todos": [{"id": str(spoken(heard)), "content": "more"}]})
        return Say("Done.") if spoken(heard) else Call("delegate_task", {"tasks": [{"goal": str(n)} for n in range(3)]})

    more = PRICED + "budget: {run: {money: 40.0}}\n"
    async with place(tmp_path, script, more=more) as here:
        await here.say("Go")
        found = await children_of(here)
        rows = [row for child in found for row in await here.runtime.store.usage.rows(child.session)]
        mandate = await here.runtime.store.mandates.of(found[0].session)

        assert [child.outcome for child in found] == ["limit"] * 3
        assert sum(row.cost or 0.0 for row in rows) <= mandate.job_money / 1e9 <= 20.0
        assert len({row.job for row in rows}) == 1


@pytest.mark.timeout(30)
@pytest.mark.parametrize("seed", range(3))
async def test_a_tree_of_a_program_s_job_holds_its_money(tmp_path, seed):
    """The job's limit holds for all levels together, whatever side by side is reserved."""
    chance = random.Random(seed)
    width, limit = chance.randint(2, 4), chance.randint(30, 90)

    def script(heard: Heard) -> Piece:
        if "delegate_task" in {tool.name for tool in heard.tools} and not spoken(heard):
            tasks = [{"goal": str(number)} for number in range(width)]
            return Call("delegate_task", {"tasks": tasks, "role": "orchestrator"})
        return Call("todo", {"todos": [{"id": str(spoken(heard)), "content": "more"}]})

    more = f"{PRICED}budget: {{job: {{money: {limit}}}}}\n"
    async with place(tmp_path, script, more=more) as here:
        owner, where = here.runtime.owner, replace(PLACE, chat="job")
        here.record = await here.runtime.hermes.open_session(where, owner, workspace=here.record.workspace, job="job")
        ended = await here.say("Go")
        rows = await here.runtime.store.read(
            lambda tx: tx.rows("SELECT job, sum(cost), count(*) FROM usage GROUP BY 1")
        )
        spent = await here.runtime.store.usage.spent(Scope.JOB, ("job",))
        outcomes = {child.outcome for child in await here.runtime.store.children.latest()}

    assert ended.outcome == "limit"
    assert outcomes <= {"limit", "answered"}
    assert [job for job, *_ in rows] == ["job"]
    assert spent.money <= limit * NANO
    assert rows[0][2] > 3


async def test_a_tool_that_no_agent_has_is_refused_at_dispatch_also_through_another(tmp_path):
    names = ("clarify", "memory", "send_file", "execute_code", "delegate_task", "agents")
    calls = [Call(name, {}) for name in names]
    calls += [Call("use_tool", {"name": name, "arguments": {"goal": "deeper"}}) for name in names]
    seen: list[str] = []

    def script(heard: Heard) -> Piece | list[Piece]:
        if WORKER not in heard.system:
            return Say("Done.") if spoken(heard) else Call("delegate_task", {"goal": "try"})
        parts = [part for message in heard.messages for part in message.parts]
        seen[:] = [part.text for part in parts if isinstance(part, ToolResult)]
        return Say("Tried.") if seen else calls

    async with place(tmp_path, script) as here:
        await here.say("Go")

        assert len(seen) == len(calls)
        assert all("There is no tool" in each for each in seen)
        assert len(await here.runtime.store.children.latest()) == 1


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("damage", "outcome", "words"),
    [
        ("UPDATE lane SET crashes = 3 WHERE id = $1", "lost", "crashed"),
        ("DELETE FROM mandate WHERE session = $1", "failed", "work that is gone"),
    ],
)
async def test_an_agent_whose_run_cannot_begin_is_reported_and_its_parent_goes_on(tmp_path, damage, outcome, words):
    def script(heard: Heard) -> Piece | Answer:
        if WORKER in heard.system:
            return Answer(pieces=(Say("Fine."),), pace=Pace(first=0.5))
        return Say("Done.") if spoken(heard) else Call("delegate_task", {"tasks": [{"goal": str(n)} for n in range(4)]})

    async with place(tmp_path, script, Options(queue=SERVED, own_only=False)) as here:
        after = await here.tell("Go")
        async with asyncio.timeout(10):
            while len(found := await children_of(here)) < 4:
                await asyncio.sleep(0.01)
        await here.runtime.store.write(lambda tx: tx.run(damage, found[3].session))
        ended = await here.ended(after)

        assert ended.text == "Done."
        assert [child.outcome for child in await children_of(here)] == ["answered"] * 3 + [outcome]
        assert words in told(here)[0]


async def test_an_agent_whose_session_is_deleted_is_reported_as_lost(tmp_path):
    def script(heard: Heard) -> Piece | Hang:
        if WORKER in heard.system:
            return Hang()
        return Say("Done.") if spoken(heard) else Call("delegate_task", {"goal": "x"})

    async with place(tmp_path, script) as here:
        after = await here.tell("Go")
        async with asyncio.timeout(10):
            while not (found := await children_of(here)):
                await asyncio.sleep(0.01)
        await here.runtime.store.sessions.delete(found[0].session)
        await here.ended(after)

        assert "Its session was deleted" in told(here)[0]


async def test_a_call_keeps_large_context_in_a_file_that_the_agent_can_read(tmp_path):
    def script(heard: Heard) -> Piece:
        if WORKER in heard.system:
            path = heard.messages[0].text.partition("`")[2].partition("`")[0]
            return Say("Read.") if spoken(heard) else Call("read_file", {"path": path, "limit": 1})
        context = "fact\n" * 30_000
        return Say("Done.") if spoken(heard) else Call("delegate_task", {"goal": "x", "context": context})

    async with place(tmp_path, script) as here:
        await here.say("Go")

        assert (await children_of(here))[0].outcome == "answered"
        child = next(asked for asked in here.server.asked if WORKER in asked.system)
        assert len(child.messages[0].text) < 1000
        assert "(failed)" not in told(here)[0]


async def test_a_parent_keeps_its_prefix_and_names_a_goal_that_repeats_its_last_message(tmp_path):
    def script(heard: Heard) -> Piece:
        if WORKER in heard.system:
            return Say("Fine.")
        return Say("Done.") if spoken(heard) else Call("delegate_task", {"goal": "Go on then"})

    async with place(tmp_path, script) as here:
        await here.say("Go on then")
        kinds = [entry.event.kind for entry in await here.log()]

        assert kinds.count("prefix_frozen") == 1
        assert "repeats the last message" in told(here)[0]
