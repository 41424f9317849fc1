"""A goal is pursued by a whole system: a model claims, commands and existing evidence decide."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.opening import Options
from hermes_agent.app.work import GOALS
from hermes_agent.core.chat import Conversation
from hermes_agent.core.events import ContextAdded, MessageTaken, Notice, RunEnded, ToolStarted
from hermes_agent.core.messages import Origin, ToolResult, Usage
from hermes_agent.core.spending import NANO, Scope
from hermes_agent.providers.demo.script import Answer, Call, Heard, Say
from hermes_agent.sandbox.place import Command, Running
from hermes_agent.store.work.goals import Criterion, Goal, Kind, State
from hermes_agent.testing.faults import Status
from hermes_agent.tools.starting import short_id
from tests.app.place import Place, another, place
from tests.work.goals.harness import JUDGE, anew, command, ended, reached, started, work_of

PRICES = "  price_input: 10\n  price_output: 100\n  max_output: 1000\n"
NEVER = command("echo broken; exit 3")
WORDS = (Criterion(kind=Kind.JUDGE, text="The file is good."),)


ELSEWHERE = Conversation(platform="cli", chat_kind="folder", chat="elsewhere")


def claims(_: Heard) -> Say:
    return Say("It is all done!")


async def taken(there: Place) -> list[MessageTaken]:
    return [entry.event for entry in await there.log() if isinstance(entry.event, MessageTaken)]


async def _now(there: Place, goal: Goal) -> Goal:
    found = await there.runtime.store.goals.get(goal.id)
    assert found is not None
    return found


async def _build(there: Place) -> Running:
    """A background command that makes the goal true."""
    text = Command(text="sleep 0.3; touch built", folder=there.record.workspace, background=True)
    return await work_of(there).desk.checker.place.start(f"{there.record.id}/build", text)


async def notices(there: Place) -> list[str]:
    return [entry.event.text for entry in await there.log() if isinstance(entry.event, Notice)]


async def test_a_goal_is_done_when_its_command_passes_and_has_receipts(tmp_path: Path):
    def script(heard: Heard) -> Say | Call:
        writes = Call("write_file", {"path": "done.txt", "content": "yes"})
        return (Say("It is all done."), writes, Say("Now it is."))[heard.turn]

    async with place(tmp_path, script) as there:
        goal = await ended(there, await started(there, criteria=command("cat done.txt")))
        receipts = await there.runtime.store.goals.receipts(goal.id)
        messages, told = await taken(there), await notices(there)

    assert goal.state is State.DONE
    assert [(each.verdict, each.exit_code) for each in receipts] == [("met", 0), ("unmet", 1)]
    assert receipts[0].output_hash
    assert [part.origin for part in messages[1].message.parts] == [Origin.RUNTIME, Origin.TOOL]
    assert "No such file" in messages[1].message.text
    assert told == [f"Goal {goal.id} is done: Reach it.\n- `cat done.txt`: met, exit 0"]
    assert (tmp_path / "home" / "goals" / f"{goal.id}.md").read_text().startswith(f"# {goal.id}: done")


async def test_a_model_that_always_claims_success_is_stopped_after_three_checks(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        goal = await ended(there, await started(there, criteria=NEVER))
        asked = len(there.server.exchanges)

    assert goal.state is State.BLOCKED
    assert "No progress in 3 checks" in goal.why
    assert asked == 3


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_claims_against_a_failing_command_are_never_done(tmp_path: Path, full: bool):
    async with place(tmp_path, claims) as there:
        for number in range(1000 if full else 4):
            await anew(there, f"session {number}")
            goal = await ended(there, await started(there, criteria=command("exit 1")))
            assert goal.state is State.BLOCKED
            await work_of(there).desk.stop(goal, State.DROPPED)


@pytest.mark.slow
async def test_similar_fixes_one_file_each_are_not_stopped(tmp_path: Path, full: bool):
    fixes = 30 if full else 6

    def script(heard: Heard) -> Call | Say:
        number = heard.turn // 2
        return Say("Fixed one.") if heard.turn % 2 else Call("write_file", {"path": f"fix{number}", "content": "x"})

    async with place(tmp_path, script) as there:
        criteria = command(f"echo $(({fixes} - $(ls fix* | wc -l))) failed; test $(ls fix* | wc -l) -ge {fixes}")
        goal = await ended(there, await started(there, criteria=criteria, turns=40))

    assert (goal.state, goal.turns) == (State.DONE, fixes)


async def test_a_judge_with_fabricated_evidence_decides_nothing(tmp_path: Path):
    def script(heard: Heard) -> Say:
        is_judge = JUDGE in heard.system
        return Say(json.dumps({"verdict": "met", "evidence": [9999]}) if is_judge else "Done!")

    async with place(tmp_path, script) as there:
        goal = await ended(there, await started(there, criteria=WORDS))
        rows = await there.runtime.store.usage.rows(there.record.id)

    assert goal.state is State.BLOCKED
    assert [row.purpose for row in rows].count("judge") == 3
    assert {row.job for row in rows} == {goal.job}


async def test_a_judge_with_evidence_that_exists_ends_the_goal(tmp_path: Path):
    def script(heard: Heard) -> Say | Call:
        if JUDGE in heard.system:
            number = heard.last.text.partition("[")[2].partition("]")[0]
            return Say(json.dumps({"verdict": "met", "evidence": [int(number)]}))
        return Say("Good.") if heard.turn else Call("write_file", {"path": "done.txt", "content": "yes"})

    async with place(tmp_path, script) as there:
        goal = await ended(there, await started(there, criteria=(*WORDS, *command("test -e done.txt"))))
        receipts = await there.runtime.store.goals.receipts(goal.id)

    assert goal.state is State.DONE
    assert {each.kind for each in receipts} == {Kind.COMMAND, Kind.JUDGE}


async def test_no_judge_is_asked_while_a_command_fails(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        await ended(there, await started(there, criteria=(*NEVER, *WORDS)))
        judged = [asked for asked in there.server.asked if JUDGE in asked.system]

    assert judged == []


async def test_three_failed_runs_block_and_nobody_is_asked_any_more(tmp_path: Path):
    async with place(tmp_path, lambda _: Status(401), more="") as there:
        goal = await ended(there, await started(there, criteria=NEVER))
        asked = len(there.server.exchanges)
        runs = [entry.event for entry in await there.log() if isinstance(entry.event, RunEnded)]
        await there.runtime.settled()

        assert len(there.server.exchanges) == asked
    assert goal.state is State.BLOCKED
    assert "3 runs in a row failed" in goal.why
    assert len(runs) == 3


async def test_a_message_that_comes_during_the_check_is_answered_first(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        goal = await started(there, criteria=command("test -e go || sleep 0.5; exit 1"), anyway=True)
        await reached(there, State.CHECKING, goal)
        (Path(there.record.workspace) / "go").touch()

        said = await there.say("And what about me?")
        after = await ended(there, goal)
        messages = await taken(there)

    assert said.text == "It is all done!"
    assert messages[1].message.text == "And what about me?"
    assert after.state is State.BLOCKED
    assert after.turns == 3


async def test_two_processes_have_one_pursuer_and_the_other_only_sees_it(tmp_path: Path):
    async with place(tmp_path, claims) as one, another(one.runtime.home, one.server) as two:
        two.record = await two.runtime.hermes.open_session(
            ELSEWHERE, two.runtime.owner, workspace=one.record.workspace, new=True
        )
        goal = await started(one, criteria=NEVER)
        await two.say("What are my goals?")
        after = await ended(one, goal)
        await work_of(two).pursuit.settled()
        shown = [entry.event.message.text for entry in await two.log() if isinstance(entry.event, ContextAdded)]
        messages = await taken(two)

    assert (after.state, after.session) == (State.BLOCKED, one.record.id)
    assert f"{goal.id} (pursued in another session)" in shown[0]
    assert len(messages) == 1


async def test_the_account_of_a_goal_holds_its_limit_and_a_raise_goes_on(tmp_path: Path):
    def script(heard: Heard) -> Answer:
        usage = Usage(input=10_000, output=100)  # 11 cents
        path = f"{heard.turn}.txt"
        piece = Call("write_file", {"path": path, "content": path}) if heard.turn % 2 == 0 else Say("Done!")
        return Answer(pieces=(piece,), usage=usage)

    async with place(tmp_path, script, more=PRICES) as there:
        goal = await started(there, criteria=NEVER, money=0.5)
        first = await ended(there, goal)
        spent = await there.runtime.store.usage.spent(Scope.JOB, (goal.job,))
        rows = await there.runtime.store.usage.rows(there.record.id)
        resumed = await work_of(there).desk.resume(first, there.record, money=1.0)
        second = await ended(there, resumed)
        more = await there.runtime.store.usage.spent(Scope.JOB, (goal.job,))

    assert first.state is State.LIMITED
    assert spent.money <= 0.5 * NANO
    assert {row.job for row in rows} == {goal.job}
    assert second.state is State.LIMITED
    assert spent.money < more.money <= NANO


@pytest.mark.timeout(600)
async def test_the_prefix_stays_the_same_whatever_becomes_of_a_goal(tmp_path: Path, full: bool):
    async with place(tmp_path, claims) as there:
        for number in range(100 if full else 2):
            await anew(there, f"session {number}")
            await there.say("Hello.")
            goal = await ended(there, await started(there, criteria=NEVER))
            await work_of(there).desk.stop(goal, State.DONE)
            await there.say("And now?")
        prefixes = {json.dumps([asked.system, [tool.name for tool in asked.tools]]) for asked in there.server.asked}
        record = await there.runtime.hermes.record(there.record.id)
        stored = {row.prefix for row in await there.runtime.store.usage.rows(record.id)}

    assert len(prefixes) == 1
    assert len(stored) == 1


async def test_a_call_that_nobody_can_approve_blocks_at_once(tmp_path: Path):
    def script(heard: Heard) -> Call | Say:
        return Say("I could not.") if heard.turn else Call("terminal", {"command": "true", "outside": True})

    async with place(tmp_path, script, Options(attended=False)) as there:
        goal = await ended(there, await started(there, criteria=NEVER))
        results = [
            part.text
            for message in (await there.runtime.hermes.view(there.record.id)).messages
            for part in message.parts
            if isinstance(part, ToolResult)
        ]
        asked = len(there.server.exchanges)

    assert "unapproved" in results[0]
    assert goal.state is State.BLOCKED
    assert "needs your approval" in goal.why
    assert asked == 2


async def test_a_stop_by_the_person_pauses_the_goal(tmp_path: Path):
    def script(_: Heard) -> Call:
        return Call("terminal", {"command": "sleep 30"})

    async with place(tmp_path, script) as there:
        goal = await started(there, criteria=NEVER)
        await there.until(ToolStarted)
        await there.runtime.hermes.stop(there.record.id)
        after = await ended(there, goal)

    assert after.state is State.PAUSED


async def test_a_report_of_the_agent_ends_the_loop_and_not_the_goal(tmp_path: Path):
    def script(heard: Heard) -> Call | Say:
        report = Call("goal", {"action": "report", "state": "blocked", "text": "There is no key."})
        return Say("I said so.") if heard.turn else report

    async with place(tmp_path, script) as there:
        goal = await ended(there, await started(there, criteria=NEVER))

    assert (goal.state, goal.why) == (State.BLOCKED, "There is no key.")


async def test_a_goal_that_waits_asks_nobody_until_its_command_ends(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        work = work_of(there)
        goal = await started(there, criteria=command("test -e built"), later=False)
        await ended(there, goal)
        before = len(there.server.exchanges)
        fresh = await work.desk.resume(await _now(there, goal), there.record)
        after = await work.desk.wait(fresh, exec_id=short_id((await _build(there)).exec_id))
        work.watch(there.record.id)
        await there.runtime.hermes.idle()
        done = await reached(there, State.DONE, after)

    assert done.ended
    assert len(there.server.exchanges) <= before + 1


async def test_a_goal_whose_folder_is_gone_is_blocked(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        goal = await started(there, criteria=command("test -e x"))
        await reached(there, State.ACTIVE, goal)
        await there.runtime.store.goals.change(goal.id, lambda now: replace(now, folder=str(tmp_path / "gone")))
        after = await ended(there, goal)

    assert after.state is State.BLOCKED
    assert "is gone" in after.why


async def test_a_session_without_goals_has_nothing_of_them(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        await there.say("Hello.")

        assert not there.runtime.snapshots.now.needs.has_made(GOALS)


async def test_a_draft_wakes_nobody(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        goal = await started(there, criteria=NEVER, later=True)

        assert goal.state is State.DRAFT
        assert await work_of(there).pursuit.next_due() is None
        assert there.server.exchanges == []
