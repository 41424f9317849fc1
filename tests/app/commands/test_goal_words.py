"""/goal and /subgoal."""

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.commands.goal_words import wish_of
from hermes_agent.app.work import work_opened
from hermes_agent.core.errors import HermesError
from hermes_agent.providers.demo.script import Say
from hermes_agent.store.work.goals import Kind, State
from tests.app.place import Place, another, place
from tests.work.goals.harness import ended, reached


def claims(_):
    return Say("Done!")


async def only(there: Place):
    (goal,) = await there.runtime.store.goals.list(ended=True)
    return goal


def test_a_line_has_words_and_flags():
    wish = wish_of(
        "All tests pass. --command pytest -q --maxfail=1 --file a.txt contains b --judge it reads well "
        "--constraint no new dependency --turns 5 --money 1.5 --tokens 1000 --anyway"
    )

    assert wish.text == "All tests pass."
    assert [(each.kind, each.text) for each in wish.criteria] == [
        (Kind.COMMAND, "pytest -q --maxfail=1"),
        (Kind.FILE, "a.txt"),
        (Kind.JUDGE, "it reads well"),
    ]
    assert (wish.turns, wish.money, wish.tokens, wish.anyway) == (5, 1.5, 1000, True)
    assert wish.constraints == ("no new dependency",)
    with pytest.raises(HermesError, match="`--turns` takes a whole number, not `many`"):
        wish_of("x --turns many")
    for wrong in ("--turns 2.5", "--tokens nan", "--money much"):
        with pytest.raises(HermesError, match="takes a"):
            wish_of(f"x {wrong}")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("resume turns -1", "Say `/goal resume"),
        ("resume budget free", "Say `/goal resume"),
        ("resume g_zzz turns 2", "no goal g_zzz|Say `/goal resume"),
        ("show g_zzz", "There is no goal|no goal g_zzz"),
        ("until tomorrow", "is no time|no goal"),
        ("clear g_1 please", "There is no goal"),
        ("draft", "Say more"),
        ("wait", "Say more"),
        ("until", "Say more"),
        ("x --command exit 1 --money nan", "takes a number"),
        ("x --command exit 1 --money -1", "Money cannot be"),
        ("x --command exit 1 --tokens -5", "Tokens cannot be negative"),
        ("x --command exit 1 --turns 0", "at least one turn"),
    ],
)
async def test_a_verb_with_wrong_words_is_no_goal(tmp_path: Path, line: str, said: str):
    async with place(tmp_path, claims) as there:
        with pytest.raises(HermesError, match=said):
            await there.text(f"/goal {line}")
        assert await there.runtime.store.goals.list(ended=True) == []


async def test_without_words_the_goals_are_listed(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        assert "There is no goal. `/goal TEXT --command CMD`" in await there.text("/goal")
        await there.text("/goal draft Have it. --command exit 1")
        goal = await only(there)

        assert (await there.text("/goal")).startswith(f"{goal.id}  draft")
        assert (await there.text("/goal list")).startswith(goal.id)
        await there.text("/goal clear")
        assert "There is no goal" in await there.text("/goal list")
        assert (await there.text("/goal list all")).startswith(f"{goal.id}  dropped")


async def test_a_goal_is_set_and_pursued_in_this_chat(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        told = await there.text("/goal Show the numbers. --command exit 1")
        goal = await ended(there, await only(there))

        assert told.startswith(f"{goal.id}  active  turn 1 of 20")
        assert goal.text == "Show the numbers."
        assert goal.state is State.BLOCKED
        assert "No progress" in await there.text("/goal status")


async def test_words_that_look_like_a_verb_are_a_goal(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        await there.text("/goal pause the music --command exit 1")

        assert (await only(there)).text == "pause the music"


async def test_verbs_act_on_the_goal_of_this_chat(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        await there.text("/goal draft Have it. --command test -e built")
        goal = await only(there)
        assert "unmet" in await there.text(f"/goal check {goal.id}")
        assert "criterion" not in await there.text("/subgoal file other.txt")
        assert "paused" in await there.text("/goal pause")
        assert "active" in await there.text(f"/goal resume {goal.id} turns 3 budget $2.50")
        resumed = await only(there)
        assert (resumed.max_turns, resumed.money, resumed.revision) == (3, 2_500_000_000, 2)
        assert "waiting" in await there.text("/goal until 2h")
        assert (await only(there)).wait_until is not None
        with pytest.raises(HermesError, match="There is no background command p12"):
            await there.text("/goal wait p12")
        await there.text("/goal unwait")
        assert "done" in await there.text("/goal done")
        assert (await only(there)).why == "Ended by hand."


async def test_a_criterion_in_words_is_for_the_judge(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        await there.text("/goal draft Have it. --command exit 1")
        await there.text("/subgoal it reads well")
        await there.text("/subgoal command exit 2")
        with pytest.raises(HermesError, match="Say what else has to hold"):
            await there.text("/subgoal")
        goal = await only(there)

    assert [(each.kind, each.text) for each in goal.criteria[1:]] == [
        (Kind.JUDGE, "it reads well"),
        (Kind.COMMAND, "exit 2"),
    ]


async def test_a_goal_of_an_earlier_process_goes_on_when_its_chat_is_opened(tmp_path: Path):

    async with place(tmp_path, claims) as there:
        await there.text("/goal draft Have it. --command exit 1")
        goal = await only(there)
        queue = there.runtime.hermes.scheduler.queue

        def due(now):
            return replace(now, state=State.CHECKING, session=there.record.id)

        async def change(tx):
            after = await there.runtime.store.goals.become(tx, goal.id, due)
            assert after is not None
            await there.runtime.store.goal_rounds.queue(tx, after, queue, "", 0)

        await there.runtime.store.write(change)
        async with another(there.runtime.home, there.server) as later:
            await work_opened(later.runtime.snapshots.now.needs, later.record)
            await reached(later, State.BLOCKED, goal)
