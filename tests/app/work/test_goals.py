"""What a run gets of goals, and what sessions without one pay for them."""

import random
from pathlib import Path

import pytest

from hermes_agent.app.opening import Options
from hermes_agent.app.settings import SERVED
from hermes_agent.app.work.board import board_on
from hermes_agent.app.work.goals import FOLDER
from hermes_agent.core.chat import Busy, Conversation
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import ContextAdded, Notice
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.store.work.goals import Criterion, Kind, State
from hermes_agent.work.goals.desk import Whose, Wish
from tests.app.place import another, place
from tests.work.board.boards import ME, made
from tests.work.goals.harness import anew, command, ended, reached, started, work_of

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
        assert (await ended(there, goal)).unmet == (f"board {card.id}: unmet",)
        with pytest.raises(HermesError, match=f"no card {card.id} of yours"):
            await work_of(there).desk.create(ANNAS, Wish(text="x", criteria=wanted), None, "")

        await board.complete(ME, card.id, "Done by hand.")
        checked = await work_of(there).desk.check(goal)

    assert checked.met
    assert checked.checks[0].evidence == "the card is done"
