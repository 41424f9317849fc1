"""What a run gets of goals, and what sessions without one pay for them."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.opening import Options
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.questions import answer_in_words, answer_question
from hermes_agent.app.settings import SERVED
from hermes_agent.app.work.board import board_on
from hermes_agent.app.work.goals import FOLDER
from hermes_agent.core.chat import Busy, Conversation, Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import ContextAdded, Notice, RunEnded
from hermes_agent.core.spending import Scope
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from hermes_agent.store.work.goals import Criterion, Kind, State
from hermes_agent.work.goals.desk import Whose, Wish
from tests.app.place import PLACE, another, place, spoken
from tests.work.board.boards import ME, made
from tests.work.goals.harness import anew, command, ended, owned_by, reached, started, work_of

NEVER = command("exit 1")
ANNAS = Whose(key="telegram:2", principal="telegram:2")


def claims(_: Heard) -> Say:
    return Say("Done!")


@pytest.mark.timeout(600)
async def test_a_group_chat_has_nothing_of_anybodys_goals(tmp_path: Path, full: bool):
    async with place(tmp_path, claims) as there:
        await started(there, text="My secret plan.", criteria=NEVER, later=True)
        there.record = await there.runtime.hermes.open_session(
            Conversation(platform="cli", chat_kind="group", chat="1"),
            there.runtime.owner,
            workspace=there.record.workspace,
            new=True,
        )
        for number in range(1000 if full else 10):
            await there.say(f"Message {number}")
        shown = [entry.event.message.text for entry in await there.log() if isinstance(entry.event, ContextAdded)]

        assert not any("secret plan" in asked.prompt for asked in there.server.asked)
        assert not any("Goals" in text for text in shown)


async def test_a_serving_process_pursues_goals_by_the_alarm_and_then_has_nothing_due(tmp_path: Path):
    async with place(tmp_path, claims, Options(queue=SERVED, own_only=False)) as there:
        goal = await started(there, criteria=NEVER)
        await reached(there, State.BLOCKED, goal)
        await there.until(Notice)
        await work_of(there).pursuit.settled()

        assert await work_of(there).pursuit.next_due() is None


async def test_a_goal_of_the_terminal_is_left_to_the_terminal(tmp_path: Path):
    async with (
        place(tmp_path, claims) as there,
        another(there.runtime.home, there.server, Options(queue=SERVED, own_only=False)) as server,
    ):
        goal = await started(there, criteria=NEVER)
        after = await ended(there, goal)

        assert after.state is State.BLOCKED
        assert (await work_of(server).pursuit.next_due()) is None


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_messages_at_any_moment_are_answered_and_never_two_runs_are_under_way(tmp_path: Path, full: bool):
    chance = random.Random(5)
    async with place(tmp_path, claims) as there:
        said = 0
        logs = []
        for number in range(500 if full else 6):
            await anew(there, f"session {number}")
            goal = await started(
                there, criteria=command(f"sleep 0.0{chance.randint(1, 5)}; date +%N >> log; exit 1"), turns=2
            )
            await there.runtime.clock.sleep(chance.uniform(0, 0.15))
            await there.tell(there.inbound(f"Message {said}", busy=chance.choice((Busy.STEER, Busy.QUEUE))))
            said += 1
            after = await ended(there, goal)
            assert after.state is State.LIMITED
            await there.runtime.hermes.idle()
            await work_of(there).desk.stop(after, State.DROPPED)
            logs.append([entry.event.kind for entry in await there.log()])
        mail = await there.runtime.store.read(lambda tx: tx.rows("SELECT state FROM inbox WHERE source = 'cli'"))

    for log in logs:
        order = [kind for kind in log if kind in ("run_started", "run_ended")]
        assert order == ["run_started", "run_ended"] * (len(order) // 2)
    assert [state for (state,) in mail] == ["answered"] * said


async def test_the_file_of_a_goal_is_left_out_where_the_settings_say_so(tmp_path: Path):
    async with place(tmp_path, claims, more="goals:\n  mirror: false\n") as there:
        await started(there, criteria=NEVER, later=True)

        assert not (tmp_path / "home" / FOLDER).exists()


async def test_a_goal_is_done_when_its_card_is_done_and_only_cards_that_its_person_sees_count(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        system = there.runtime
        board = board_on(system.home, system.settings, system.store, system.clock)
        card = await made(board)
        wanted = (Criterion(kind=Kind.BOARD, text=card.id),)
        goal = await started(there, criteria=wanted)
        waiting = await ended(there, goal)
        assert (waiting.state, waiting.unmet) == (State.WAITING, (f"board {card.id}: unmet",))
        with pytest.raises(HermesError, match=f"no card {card.id} of yours"):
            await work_of(there).desk.create(ANNAS, Wish(text="x", criteria=wanted), None, "")

        turns = len(there.server.exchanges)
        work_of(there).watch(there.record.id)
        await board.complete(ME, card.id, "Done by hand.")
        await reached(there, State.DONE, goal)
        receipts = await system.store.goals.receipts(goal.id)

    assert receipts[0].evidence == "the card is done"
    assert len(there.server.exchanges) == turns


@pytest.mark.parametrize(("attended", "letters"), [(True, []), (False, ["telegram:dm:7"])])
async def test_news_go_to_the_home_chat_where_nobody_sees_the_session(
    tmp_path: Path, attended: bool, letters: list[str]
):
    more = "goals:\n  stalls: 2\ngateway:\n  channels:\n    telegram: {home: '7'}\n"
    async with place(tmp_path, claims, Options(attended=attended), more=more) as there:
        goal = await ended(there, await started(there, criteria=NEVER))
        told = await there.runtime.store.read(lambda tx: tx.rows("SELECT place, body FROM outbox"))

    assert goal.state is State.BLOCKED
    assert [where for where, _ in told] == letters
    assert all(f"Goal {goal.id} is blocked" in str(body) for _, body in told)


async def test_agents_of_a_goal_are_charged_to_its_account_and_keep_its_limit(tmp_path: Path):
    def script(heard: Heard) -> Piece:
        if "You work for another agent" in heard.system:
            return Call("todo", {"todos": [{"id": str(spoken(heard)), "content": "more"}]})
        tasks = [{"goal": str(number)} for number in range(3)]
        return Say("Done!") if spoken(heard) else Call("delegate_task", {"tasks": tasks})

    prices = "  price_input: 1000\n  price_output: 1000\n"
    async with place(tmp_path, script, more=prices) as there:
        goal = await ended(there, await started(there, criteria=NEVER, money=30.0))
        rows = await there.runtime.store.read(lambda tx: tx.rows("SELECT DISTINCT job FROM usage"))
        spent = await there.runtime.store.usage.spent(Scope.JOB, (goal.job,))
        children = await there.runtime.store.children.of(there.record.id)

    assert goal.state is State.LIMITED
    assert [child.outcome for child in children] == ["limit"] * 3
    assert rows == [(goal.job,)]
    assert spent.money <= goal.money


async def test_agents_in_the_background_keep_no_goal_going(tmp_path: Path):
    def script(heard: Heard) -> Piece:
        if "You work for another agent" in heard.system:
            return (
                Call("write_file", {"path": "n", "content": heard.messages[0].text}) if not spoken(heard) else Say("x")
            )
        last, goal = heard.messages[-1], str(len(heard.messages))
        is_report = last.role == "tool" or last.text.startswith("Agent ")
        return Say("Done!") if is_report else Call("delegate_task", {"goal": goal, "background": True})

    async with place(tmp_path, script, more="goals: {max_turns: 4}\n") as there:
        goal = await ended(there, await started(there, criteria=NEVER))
        runs = [entry for entry in await there.log() if isinstance(entry.event, RunEnded)]

    assert goal.state in (State.LIMITED, State.BLOCKED)
    assert len(runs) <= 8


async def test_a_goal_stops_when_its_person_is_removed(tmp_path: Path):
    asked: list[str] = []

    def standing(principal: str) -> Standing:
        return Standing.GUEST if asked else Standing.MEMBER

    def script(_: Heard) -> Say:
        asked.append("")
        return Say("Done!")

    async with place(tmp_path, script, Options(standing=standing)) as there:
        work = work_of(there)
        anna = replace(PLACE, chat="anna")
        who = Principal(platform="cli", user="anna", standing=Standing.MEMBER)
        record = await there.runtime.hermes.open_session(anna, who, workspace=there.record.workspace)
        whose = owned_by(there, who.key)
        wish = Wish(text="x", criteria=(Criterion(kind=Kind.FILE, text="no"),))
        made_ = await work.desk.create(whose, wish, record, record.workspace)
        goal = await ended(there, made_.goal)

    assert (goal.state, goal.why) == (State.BLOCKED, "cli:anna may not use this agent any more.")
    assert len(asked) == 1


async def test_the_owner_is_asked_once_whether_the_folders_own_tests_decide(tmp_path: Path):
    async with place(tmp_path, claims) as there:
        folder = Path(there.record.workspace)
        (folder / "justfile").write_text("check:\n    test -e ok\n")
        await there.text("/goal Make it good.")
        notice = (await there.until(Notice)).event
        access = Access(system=there.runtime, who=there.runtime.owner, session=there.record.id, where=PLACE)
        told = await answer_in_words(access, "c")
        [goal] = await there.runtime.store.goals.list()
        with pytest.raises(HermesError, match="changed since"):
            await answer_question(access, f"goal:{goal.id}:other", "count it")
        later = await answer_question(access, notice.question, "not now")

    assert notice.text == f"Count {goal.id} as done when `just check` exits with 0?"
    assert told == f"{goal.id} is done when `just check` exits with 0."
    assert [str(each) for each in goal.criteria] == ["`just check`"]
    assert "A model judges it" in later
