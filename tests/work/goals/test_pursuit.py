"""A goal is pursued by a whole system: a model claims, commands decide."""

from pathlib import Path

from hermes_agent.app.work import GOALS
from hermes_agent.app.work.goals import GoalWork
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.store.work.goals import Criterion, Goal, Kind, State
from hermes_agent.work.goals.desk import Wish
from tests.app.place import Place, place

FAST = "approvals:\n  mode: 'off'\n"


def work_of(there: Place) -> GoalWork:
    work: GoalWork = there.runtime.snapshots.now.needs.made(GOALS)
    return work


async def begun(there: Place, wish: Wish) -> Goal:
    """A goal that this session pursues, as it stands when nothing goes on any more."""
    work = work_of(there)
    who = work.owned_by(there.runtime.owner.key)
    made = await work.desk.create(who, wish, there.record, there.record.workspace)
    return await work.settled(made.goal.id)


def command(text: str) -> tuple[Criterion, ...]:
    return (Criterion(kind=Kind.COMMAND, text=text),)


async def test_a_goal_is_done_when_its_command_passes_and_has_a_receipt(tmp_path: Path):
    def script(heard: Heard) -> Say | Call:
        if heard.turn == 0:
            return Say("It is all done.")
        if heard.turn == 1:
            return Call("write_file", {"path": "done.txt", "content": "yes"})
        return Say("Now it is.")

    async with place(tmp_path, script) as there:
        goal = await begun(there, Wish(text="There is a file.", criteria=command("test -e done.txt")))
        receipts = await there.runtime.store.goals.receipts(goal.id)
        said = [entry.event for entry in await there.log() if entry.event.kind == "message_taken"]

    assert goal.state is State.DONE
    assert [(each.verdict, each.exit_code) for each in receipts] == [("met", 0), ("unmet", 1)]
    assert len(said) == 2


async def test_a_model_that_always_claims_success_is_stopped_after_three_checks(tmp_path: Path):
    async with place(tmp_path, lambda _: Say("Done!")) as there:
        goal = await begun(there, Wish(text="Never.", criteria=command("echo broken; exit 3")))
        asked = len(there.server.exchanges)

    assert goal.state is State.BLOCKED
    assert "No progress" in goal.why
    assert asked == 3
