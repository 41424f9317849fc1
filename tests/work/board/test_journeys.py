"""A person puts cards on the board, and processes of the real program do them."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from hermes_agent.core.messages import Origin, Role, ToolResult
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say
from hermes_agent.store.work.cards import Ending, Reason, Status
from hermes_agent.work.board.new_cards import NewCard
from hermes_agent.work.board.rules import Order, Verb
from tests.cli.shell import typed
from tests.work.board.boards import ANNA, text
from tests.work.board.harness import ME, completing, desk, gone, processes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
FOREVER = Pace(first=600.0)


def first_text(heard: Heard) -> str:
    return heard.messages[0].text


def answered(heard: Heard) -> str:
    return "".join(part.text for part in heard.last.parts if isinstance(part, ToolResult))


def complete(summary: str) -> Call:
    return Call("kanban_complete", {"summary": summary})


async def test_a_card_is_done_by_a_process_of_its_own(tmp_path: Path):
    async with desk(tmp_path, completing) as here:
        card = await here.create()

        done = await here.until(card.id, Status.DONE, Status.BLOCKED)

        assert (done.status, done.summary, done.owner) == (Status.DONE, "Wrote hello.", "")
        assert await here.over(card.id) == ["completed"]
        assert await here.log(card.id) == ["created", "claimed", "workspace", "adopted", "complete"]


async def test_who_waits_for_a_card_begins_with_what_it_left(tmp_path: Path):
    read: list[str] = []

    def script(heard: Heard) -> Call | Say:
        if heard.turn == 0:
            read.append(first_text(heard))
        summary = "The port is 7777." if "Find the port" in first_text(heard) else "Used it."
        return Say("Done.") if heard.turn else Call("kanban_complete", {"summary": summary, "artefacts": []})

    async with desk(tmp_path, script) as here:
        first = await here.create("Find the port")
        second = await here.create("Use the port", parents=(first.id,))
        assert second.status is Status.TODO

        await here.until(second.id, Status.DONE)

        (run,) = await here.board.runs.of(second.id)
        entries = await here.here.runtime.store.history.entries(run.session)
        parts = [part for each in entries if each.event.kind == "message_taken" for part in each.event.message.parts]

        assert len(read) == 2
        assert "The port is 7777." in read[1]
        assert [part.origin for part in parts if "Find the port" in part.text] == [Origin.OWNER]


async def test_a_killed_worker_is_followed_by_one_that_goes_on_in_the_same_session(tmp_path: Path):
    killed: list[int] = []

    def script(heard: Heard) -> Call | Answer | Say:
        if heard.turn == 0:
            return Call("kanban_heartbeat", {"note": "begun"})
        if heard.turn == 1 and not killed:
            return Answer(pieces=(Say("never said"),), pace=FOREVER)
        return Call("kanban_complete", {"summary": f"turn {heard.turn}"}) if heard.turn == 1 else Say("ok")

    async with desk(tmp_path, script) as here:
        card = await here.create()
        await here.until(card.id, Status.RUNNING)
        await here.noted(card.id, "begun")
        (worker,) = processes(here)
        killed.append(worker)
        os.kill(worker, signal.SIGKILL)

        done = await here.until(card.id, Status.DONE, Status.BLOCKED)

        assert (done.status, done.summary, done.crashes, done.attempts) == (Status.DONE, "turn 1", 1, 0)
        assert await here.over(card.id) == ["crashed", "completed"]
        assert len({run.session for run in await here.board.runs.of(card.id)}) == 1


async def test_a_card_that_nobody_completes_has_its_attempts_and_no_more(tmp_path: Path):
    asked: list[str] = []

    def script(heard: Heard) -> Say:
        asked.append(heard.last.text)
        return Say("I think that is it.")

    async with desk(tmp_path, script) as here:
        card = await here.create(max_attempts=2)

        blocked = await here.until(card.id, Status.BLOCKED)

        assert (blocked.blocked, blocked.attempts) == (Reason.FAILED, 2)
        assert await here.over(card.id) == ["gave_up", "gave_up"]
        assert sum("without saying how the card stands" in each for each in asked) == 2
        assert sum("yours again" in each for each in asked) == 1


async def test_the_word_of_a_worker_is_not_enough_where_a_check_is_set(tmp_path: Path):
    def script(heard: Heard) -> Call | Say:
        if heard.last.role is not Role.TOOL:
            again = "Exit code 1" in heard.last.text
            return Call("write_file", {"path": "out.txt", "content": "x"}) if again else complete("I did it.")
        return complete("Now it is there.") if "out.txt" in heard.last.text else Say("ok")

    async with desk(tmp_path, script) as here:
        card = await here.create(check="command:test -e out.txt", max_attempts=3)

        done = await here.until(card.id, Status.DONE, Status.BLOCKED)

        assert (done.status, done.attempts) == (Status.DONE, 1)
        assert await here.over(card.id) == ["completed", "failed", "completed", "passed"]
        receipts = [run for run in await here.board.runs.of(card.id) if run.kind == "validate"]
        assert [run.exit_code for run in receipts] == [1, 0]
        failed = next(each for each in await here.board.cards.events(card.id) if each.kind == "failed")
        assert failed.text.startswith(f"Exit code 1 ({receipts[0].exec_id})")


async def test_a_worker_that_waits_for_a_person_goes_on_with_the_answer(tmp_path: Path):
    def script(heard: Heard) -> Call | Say:
        if heard.last.role is Role.TOOL:
            return Say("ok")
        if "blue" in heard.last.text:
            return Call("kanban_complete", {"summary": "Painted it blue."})
        return Call("kanban_block", {"why": "Which colour?", "reason": "needs_input"})

    async with desk(tmp_path, script) as here:
        card = await here.create()
        await here.until(card.id, Status.BLOCKED)
        await here.over(card.id)

        await here.board.move(ME, card.id, Order(verb=Verb.UNBLOCK), text="blue")

        assert (await here.until(card.id, Status.DONE)).summary == "Painted it blue."
        assert len({run.session for run in await here.board.runs.of(card.id)}) == 1


async def test_a_worker_that_talks_on_after_its_card_is_done_is_ended(tmp_path: Path):
    def script(heard: Heard) -> Call | Answer:
        return Answer(pieces=(Say("and more"),), pace=FOREVER) if heard.turn else complete("Done.")

    async with desk(tmp_path, script) as here:
        card = await here.create()
        await here.until(card.id, Status.DONE)
        assert await here.over(card.id) == ["completed"]
        await gone(here)


def waiting(heard: Heard) -> Answer | Call:
    """The script of a worker that starts something that stays, and then waits for ever."""
    if heard.turn == 0:
        return Call("kanban_heartbeat", {"note": "begun"})
    return Answer(pieces=(Say("never"),), pace=FOREVER)


async def test_a_cancelled_card_ends_its_process(tmp_path: Path):
    async with desk(tmp_path, waiting) as here:
        card = await here.create()
        await here.noted(card.id, "begun")

        await here.board.move(ME, card.id, Order(verb=Verb.CANCEL))

        assert await here.over(card.id) == [Ending.CANCELLED]
        await gone(here)
        assert (await here.board.cards.get(card.id)).status is Status.CANCELLED


async def test_a_card_has_its_time_and_no_more(tmp_path: Path):
    async with desk(tmp_path, waiting) as here:
        card = await here.create(max_minutes=0.05, max_attempts=1)

        blocked = await here.until(card.id, Status.BLOCKED)

        assert (blocked.blocked, blocked.attempts, blocked.crashes) == (Reason.FAILED, 1, 0)
        assert await here.over(card.id) == ["timed_out"]
        await gone(here)


async def test_a_program_that_cannot_start_pauses_its_profile(tmp_path: Path):
    async with desk(tmp_path, completing) as here:
        (here.board.home.base / "profiles/broken").mkdir(parents=True)
        (here.board.home.base / "profiles/broken/config.yaml").write_text("model: [")
        cards = [await here.create(f"{number}", assignee="broken") for number in range(2)]

        await here.runs_of(*(card.id for card in cards), outcome="spawn_failed", most=3)
        other = await here.create("works")
        await here.until(other.id, Status.DONE)

        outcomes = [run.outcome for card in cards for run in await here.board.runs.of(card.id)]
        assert 3 <= len(outcomes) <= 4
        assert set(outcomes) == {"spawn_failed"}


async def test_a_profile_works_on_the_board_of_the_base_home(tmp_path: Path):
    def script(heard: Heard) -> Call | Say:
        steps = [
            Call("write_file", {"path": "out.txt", "content": "from a tool"}),
            Call("terminal", {"command": "cat out.txt && echo $HERMES_KANBAN_TASK >task"}),
            Call("kanban_complete", {"summary": "Did it.", "artefacts": ["out.txt", "task"]}),
            Say("ok"),
        ]
        return steps[min(heard.turn, 3)]

    async with desk(tmp_path, script) as here:
        folder = here.board.home.base / "profiles/coder"
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(here.board.home.config_file.read_text())
        card = await here.create(assignee="coder")

        done = await here.until(card.id, Status.DONE, Status.BLOCKED)

        assert done.status is Status.DONE
        run = (await here.board.runs.of(card.id))[0]
        assert run.profile == "coder"
        assert await here.here.runtime.store.sessions.get(run.session) is None
        assert (folder / "hermes.db").exists()
        kept = {file.name: text(file.path) for file in await here.board.cards.files(card.id)}
        assert kept == {"out.txt": "from a tool", "task": f"{card.id}\n"}


def committed(repo: Path) -> list[str]:
    """A repository with a commit; the words of git in it."""
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(repo)]
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    subprocess.run([*words, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    return words


def branches(words: list[str]) -> str:
    return subprocess.run([*words, "branch"], check=True, capture_output=True, text=True).stdout


async def test_a_worktree_is_made_for_the_card(tmp_path: Path):
    repo = tmp_path / "repo"
    words = committed(repo)

    async with desk(tmp_path, completing) as here:
        card = await here.create(workspace=f"worktree:{repo}")
        done = await here.until(card.id, Status.DONE, Status.BLOCKED)

        assert (done.status, done.branch) == (Status.DONE, f"hermes/{card.id}")
        assert Path(done.folder).parent == here.board.home.base / "workspace/board"
        assert done.branch in branches(words)


async def test_a_reviewer_of_another_profile_accepts_or_refuses(tmp_path: Path):
    def script(heard: Heard) -> Call | Say:
        if heard.last.role is Role.TOOL:
            return Say("ok")
        if "You review" not in first_text(heard):
            return Call("kanban_complete", {"summary": f"try {heard.turn}"})
        if "try 0" in "".join(message.text for message in heard.messages):
            return Call("kanban_block", {"why": "The title is missing."})
        return Call("kanban_complete", {"summary": "Looks right."})

    async with desk(tmp_path, script) as here:
        folder = here.board.home.base / "profiles/critic"
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(here.board.home.config_file.read_text())
        card = await here.create(check="profile:critic", max_attempts=3)

        await here.when(card.id, lambda found: found.attempts == 1)
        done = await here.until(card.id, Status.DONE, Status.BLOCKED)

        assert done.attempts >= 1
        kinds = [(run.kind.value, run.outcome) for run in await here.board.runs.of(card.id)]
        assert kinds[:2] == [("work", "completed"), ("validate", "failed")]


async def test_a_card_in_triage_is_divided_and_goes_on_when_its_pieces_are_done(tmp_path: Path):
    def script(heard: Heard) -> Call | Say | Answer:
        if "too large" not in first_text(heard):
            return Say("ok") if heard.turn else Call("kanban_complete", {"summary": "piece"})
        steps = [
            Answer(pieces=(Call("kanban_create", {"title": "a"}), Call("kanban_create", {"title": "b"}))),
            Call("kanban_complete", {"summary": "Two pieces."}),
            Say("ok"),
        ]
        return steps[min(heard.turn, 2)]

    async with desk(tmp_path, script, "board:\n  auto_decompose: true\n") as here:
        card = await here.create("Build all of it", triage=True)

        done = await here.until(card.id, Status.DONE)

        assert done.done
        pieces = await here.board.cards.parents(card.id)
        assert [(await here.board.cards.get(each)).status for each in pieces] == [Status.DONE] * 2
        assert [run.kind.value for run in await here.board.runs.of(card.id)] == ["decompose", "work"]


async def test_a_card_with_turns_of_its_own_goes_on_until_it_is_complete(tmp_path: Path):
    def script(heard: Heard) -> Call | Say:
        if "1 turns left" in heard.last.text:
            return complete("At last.")
        return Say("Not yet." if heard.last.role is not Role.TOOL else "ok")

    async with desk(tmp_path, script) as here:
        card = await here.create(goal_turns=4)

        done = await here.until(card.id, Status.DONE, Status.BLOCKED)

        assert (done.status, done.summary, done.attempts) == (Status.DONE, "At last.", 0)
        assert await here.over(card.id) == ["completed"]


async def test_the_card_of_a_member_runs_for_the_member(tmp_path: Path):
    settings = "gateway:\n  channels:\n    telegram: {enabled: false, owners: ['1'], members: ['2']}\n"
    secret = ""

    def script(heard: Heard) -> Call | Say:
        if heard.turn == 0:
            return Call("kanban_show", {"card": secret})
        return complete(answered(heard)[:60]) if heard.turn == 1 else Say("ok")

    async with desk(tmp_path, script, settings) as here:
        secret = (await here.create("secret", hold=True)).id
        created = await here.board.create(ANNA, NewCard(title="Tell me", max_minutes=2))

        done = await here.until(created.card.id, Status.DONE, Status.BLOCKED)

        assert f"There is no card {secret}" in done.summary
        (run,) = await here.board.runs.of(done.id)
        record = await here.here.runtime.store.sessions.get(run.session)
        assert record is not None
        assert record.principal == "telegram:2"


async def test_a_worker_reads_the_body_that_is_too_long_for_its_card(tmp_path: Path):
    def script(heard: Heard) -> Call | Say:
        if heard.turn == 0:
            return Call("kanban_show", {})
        if heard.turn == 1:
            return Call("kanban_fetch", {"name": "body.md"})
        if heard.turn == 2:
            return Call("terminal", {"command": "tail -n 1 body.md"})
        return complete(answered(heard)[-60:]) if heard.turn == 3 else Say("ok")

    async with desk(tmp_path, script) as here:
        card = await here.create(body="x" * 100_001 + "\nthe last line")

        done = await here.until(card.id, Status.DONE, Status.BLOCKED)

        assert "the last line" in done.summary


async def test_one_round_starts_a_card_and_ends_and_the_next_one_records_its_end(tmp_path: Path):
    async with desk(tmp_path, completing, "board: {dispatch: false}\n") as here:
        card = await here.create()
        home = here.here.runtime.home.root

        assert (await asyncio.to_thread(typed, home, "kanban", "dispatch")).out == "1 card at work.\n"
        await here.until(card.id, Status.DONE)
        while [run for run, _ in await here.board.runs.open()]:
            assert "at work" in (await asyncio.to_thread(typed, home, "kanban", "dispatch")).out

        assert await here.over(card.id) == ["completed"]
