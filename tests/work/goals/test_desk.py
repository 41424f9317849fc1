"""What a person does with goals."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import MessageTaken, ToolStarted
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.store.work.goals import Criterion, Goal, Kind, State
from hermes_agent.work.goals.desk import Whose, criterion_of, moment_of
from tests.app.place import place
from tests.work.goals.harness import anew, command, ended, owned_by, reached, started, work_of

NEVER = command("exit 1")
NOON = datetime.fromisoformat("2026-11-27T12:00:00+00:00").timestamp()


def claims(_: Heard) -> Say:
    return Say("Done!")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10), ("10m", 600), ("2 h", 7200), ("1d", 86_400), ("12:30", 1800), ("11:30", 84_600)],
)
def test_a_time_is_a_span_or_the_next_such_time_of_the_day(text: str, seconds: float):
    assert moment_of(text, NOON) == NOON + seconds


def test_a_date_is_of_this_machines_time_zone():
    assert moment_of("2026-11-27 13:00", NOON) == NOON + 3600
    assert moment_of("2026-11-27T13:00+01:00", NOON) == NOON
    for wrong in ("soon", "25:00", "", "10 parsecs", "0001-01-01"):
        with pytest.raises(HermesError, match="is no time"):
            moment_of(wrong, NOON)


def test_a_file_may_have_to_contain_a_text_or_have_a_hash():
    digest = "a" * 64

    assert criterion_of("file", " my file.txt ") == Criterion(kind=Kind.FILE, text="my file.txt")
    assert criterion_of("file", "a.txt contains b c") == Criterion(kind=Kind.FILE, text="a.txt", contains="b c")
    assert criterion_of("file", f"a.txt sha256 {digest}").sha256 == digest
    assert criterion_of("command", " pytest -q ") == Criterion(kind=Kind.COMMAND, text="pytest -q")
    with pytest.raises(HermesError, match="Say which file"):
        criterion_of("file", " ")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"text": " "}, "Say what is to be reached"),
        ({"text": "x" * 4001}, "at most 4,000 characters; this has 4,001"),
        ({"turns": 0}, "at least one turn, not 0"),
        ({"turns": -1}, "at least one turn, not -1"),
        ({"money": -1.0}, "cannot be negative"),
        ({"criteria": command("rm -rf /")}, "cannot be a criterion. Never allowed here"),
        ({"criteria": command("curl x")}, "deny list"),
        ({"criteria": (Criterion(kind=Kind.BOARD, text="t_1"),)}, "There is no card t_1 of yours"),
        ({"criteria": command("true")}, "Already true: `true`"),
    ],
)
async def test_what_cannot_be_a_goal_is_refused_at_once_with_its_reason(tmp_path: Path, more: dict, why: str):
    async with place(tmp_path, claims, more="approvals:\n  deny: ['curl *']\n") as there:
        with pytest.raises(HermesError, match=why.replace("(", "\\(")):
            await started(there, **{"text": "Reach it.", "criteria": NEVER, **more})

        assert await there.runtime.store.goals.list(ended=True) == []
        assert there.server.exchanges == []


async def test_what_is_true_already_is_begun_anyway_where_that_is_said(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        goal = await ended(there, await started(there, criteria=command("true"), anyway=True))

    assert goal.state is State.DONE


async def test_without_a_judge_words_are_no_criterion(tmp_path: Path):
    async with place(tmp_path, claims, more="goals:\n  judge: never\n") as there:
        with pytest.raises(HermesError, match="Give a command or a file"):
            await started(there)


async def test_the_eleventh_open_goal_is_refused(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        for _ in range(10):
            await work_of(there).desk.stop(await started(there, criteria=NEVER), State.PAUSED)
        with pytest.raises(HermesError, match="10 open goals, which is the most"):
            await started(there, criteria=NEVER)


async def test_a_session_pursues_one_goal_and_none_beside_a_job(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        first = await started(there, criteria=NEVER)
        with pytest.raises(HermesError, match=f"Goal {first.id} is pursued here"):
            await started(there, criteria=NEVER)
        hermes, owner = there.runtime.hermes, there.runtime.owner
        where = there.inbound("x").conversation
        there.record = await hermes.open_session(where, owner, workspace=there.record.workspace, job="card:1", new=True)
        with pytest.raises(HermesError, match="belongs to the job card:1"):
            await started(there, criteria=NEVER)


async def test_an_unknown_goal_names_the_nearest(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        goal = await started(there, criteria=NEVER, later=True)
        desk, who = work_of(there).desk, owned_by(there)
        near = goal.id[:-1] + ("0" if goal.id[-1] != "0" else "1")

        with pytest.raises(HermesError, match=f"There is no goal {near}. Did you mean {goal.id}"):
            await desk.find(who, near)
        with pytest.raises(HermesError, match="See `/goal list`"):
            await desk.find(Whose(key="telegram:9", principal="telegram:9"), goal.id)
        with pytest.raises(HermesError, match=r"There is no goal. `/goal TEXT`"):
            await desk.find(Whose(key="telegram:9", principal="telegram:9"))
        assert (await desk.find(who)).id == goal.id
        await desk.stop(goal, State.DROPPED)
        assert (await desk.find(who)).state is State.DROPPED


async def test_a_new_criterion_makes_a_revision_that_stale_checks_do_not_touch(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        goal = await started(there, criteria=command("test -e go && exit 0; sleep 0.3; touch go; exit 0"), anyway=True)
        await reached(there, State.CHECKING, goal)
        desk, who = work_of(there).desk, owned_by(there)
        after = await desk.add(who, goal, NEVER[0])
        found = await ended(there, after)

    assert after.revision == 2
    assert (found.state, found.revision) == (State.BLOCKED, 2)


async def test_a_paused_goal_is_resumed_where_a_person_says_so(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        desk = work_of(there).desk
        goal = await ended(there, await started(there, criteria=NEVER))
        done = await desk.stop(await desk.resume(goal, there.record, turns=2), State.DONE)

        assert (done.max_turns, done.why) == (goal.turns + 2, "Ended by hand.")
        for act in (
            desk.stop(done, State.PAUSED),
            desk.resume(done, there.record),
            desk.wait(done, 1.0),
            desk.unwait(done),
        ):
            with pytest.raises(HermesError, match=goal.id):
                await act


async def test_a_message_that_no_run_has_read_is_taken_back_with_its_goal(tmp_path: Path):
    async with place(tmp_path, [Call("terminal", {"command": "sleep 1"}), Say("Slept."), Say("Worked.")]) as there:
        await there.tell("Sleep.")
        await there.until(ToolStarted)
        goal = await started(there, criteria=NEVER)
        await work_of(there).desk.stop(goal, State.PAUSED)
        await there.runtime.hermes.idle()
        asked = len(there.server.exchanges)

    assert asked == 2


@pytest.mark.parametrize("how", ["moved", "checked"])
async def test_a_continuation_that_no_run_has_read_is_taken_back_by_a_move_or_a_check(tmp_path: Path, how: str):
    async with place(tmp_path, [Call("terminal", {"command": "sleep 1"}), Say("Slept."), Say("Worked.")]) as there:
        await there.tell("Sleep.")
        await there.until(ToolStarted)
        goal, busy = await started(there, criteria=command("test -e ok")), there.record
        desk = work_of(there).desk
        if how == "moved":
            await anew(there, "elsewhere")
            await desk.resume(goal, there.record)
        else:
            (Path(there.record.workspace) / "ok").touch()
            await desk.check(goal)
        await there.runtime.hermes.idle()
        mail = await there.runtime.store.inbox.find("goal", f"{goal.id}:1:0:begin")
        taken = [
            entry.event
            for entry in await there.runtime.store.history.entries(busy.id)
            if isinstance(entry.event, MessageTaken)
        ]

    assert mail is not None
    assert mail.state == "refused"
    assert len(taken) == 1


async def test_an_old_goal_is_found_by_its_id_however_many_came_after(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        work = work_of(there)
        goals, who = there.runtime.store.goals, owned_by(there)
        old = Goal(id="g_old", principal="owner", text="x", created=1.0, state=State.DROPPED, ended=1.0)

        async def add(tx):
            for each in (old, *(replace(old, id=f"g_{n}") for n in range(250))):
                await goals.put(tx, each)

        await there.runtime.store.write(add)
        await goals.change("g_1", lambda goal: goal)

        assert (await work.desk.find(who, "g_old")).id == "g_old"
        with pytest.raises(HermesError, match="There is no goal g_old"):
            await work.desk.find(Whose(key="telegram:2", principal="telegram:2"), "g_old")


async def test_used_up_turns_need_more_turns(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        desk = work_of(there).desk
        goal = await ended(
            there, await started(there, criteria=command("date +%N; touch $(date +%N).x; exit 1"), turns=2)
        )
        assert goal.state is State.LIMITED
        with pytest.raises(HermesError, match="2 turns are used up"):
            await desk.resume(goal, there.record)
        with pytest.raises(HermesError, match="at least one"):
            await desk.resume(goal, there.record, turns=0)
        again = await ended(there, await desk.resume(goal, there.record, turns=1))

    assert (again.state, again.turns, again.max_turns) == (State.LIMITED, 3, 3)


async def test_a_goal_waits_for_a_time_and_is_looked_at_when_somebody_says_so(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        work = work_of(there)
        goal = await started(there, criteria=command("test -e built"))
        waits = await work.desk.wait(goal, until=there.runtime.clock.now() + 3600)
        work.watch(there.record.id)
        await there.runtime.hermes.idle()
        with pytest.raises(HermesError, match="There is no background command x/y"):
            await work.desk.wait(waits, exec_id="x/y")
        (Path(there.record.workspace) / "built").touch()
        await work.desk.unwait(waits)
        done = await reached(there, State.DONE, goal)

    assert waits.state is State.WAITING
    assert done.ended


async def test_a_check_now_keeps_receipts_and_ends_what_holds(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        desk = work_of(there).desk
        goal = await started(there, criteria=command("test -e built"), later=True)
        first = await desk.check(goal)
        (Path(there.record.workspace) / "built").touch()
        second = await desk.check(goal)
        receipts = await there.runtime.store.goals.receipts(goal.id)

    assert (first.met, first.goal.state) == (False, State.DRAFT)
    assert (second.met, second.goal.state) == (True, State.DONE)
    assert [each.verdict for each in receipts] == ["met", "unmet"]
