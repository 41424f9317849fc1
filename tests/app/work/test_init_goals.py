"""What work adds to a run, and what sessions without any pay for it."""

import statistics
import time
from pathlib import Path

from hermes_agent.app.work import GOALS, whose, work_part
from hermes_agent.core.chat import Conversation
from hermes_agent.providers.demo.script import Heard, Say
from tests.app.place import Place, place
from tests.work.goals.harness import command, started

NEVER = command("exit 1")


def claims(_: Heard) -> Say:
    return Say("Done!")


async def part(there: Place):
    record = await there.runtime.hermes.record(there.record.id)
    return await work_part(there.runtime.snapshots.now.needs, record, None)


async def test_a_run_gets_the_account_the_closing_and_the_tail_of_its_goal(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        before = await part(there)
        goal = await started(there, criteria=NEVER, tokens=1000)
        pursues = await part(there)
        there.record = await there.runtime.hermes.open_session(
            Conversation(platform="cli", chat_kind="folder", chat="other"),
            there.runtime.owner,
            workspace=there.record.workspace,
        )
        sees = await part(there)

    assert (before.tails, before.job, before.limits) == ((), "", ())
    assert (pursues.job, pursues.limits) == (goal.job, goal.limits)
    assert len(pursues.closings) == len(before.closings) + 1
    assert (sees.job, len(sees.closings), len(sees.tails)) == ("", len(before.closings), 1)


async def test_the_owner_has_the_same_goals_wherever_they_speak(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        standings = there.runtime.standings

        assert whose(standings, there.runtime.owner.key) == "owner"
        assert whose(standings, "telegram:9") == "telegram:9"


async def test_a_session_without_goals_loads_nothing_of_them_and_pays_next_to_nothing(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        await there.say("Hello.")
        needs, record = there.runtime.snapshots.now.needs, await there.runtime.hermes.record(there.record.id)
        took = []
        for _ in range(200):
            began = time.perf_counter()
            await work_part(needs, record, None)
            took.append(time.perf_counter() - began)

        assert not needs.has_made(GOALS)
        assert statistics.median(took) < 0.001
